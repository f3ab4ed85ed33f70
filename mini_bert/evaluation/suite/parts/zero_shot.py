"""What a model knows without being trained for it: grammar, agreement, facts, words."""

from ...formats.agreement import read_agreement
from ...formats.minimal_pairs import read_minimal_pairs
from ...representations.similarity import STATIC, probe_semantic_knowledge
from ...zero_shot.agreement import agreement
from ...zero_shot.facts import probe_factual_knowledge
from ...zero_shot.minimal_pairs import CHANCE, minimal_pairs
from ..context import Context
from ..rows import NUMBER, Measured, Row


def grammar(context: Context) -> Measured:
    """Minimal pairs, by phenomenon."""
    pairs = [pair for path in context.tasks.pairs for pair in read_minimal_pairs(path)]
    found = minimal_pairs(context.model, context.tokenizer, pairs, counts=context.counts,
                          max_samples=context.sizes.pairs, seed=context.seed, threads=context.threads,
                          progress=lambda done, total: context.report("masking", done, total))
    average = found.average
    row = Row(f"average of {len(found.paradigms)} paradigms", average["token"],
              {"chance": CHANCE, "unigram": average["unigram"], "bigram": average["bigram"]},
              sample=f"{found.pairs:,} pairs")
    return Measured([row], found.to_dict(), [f"Unigram and bigram score by counts of {context.counted}.", *_counted(
        (found.left_out, "pairs were left out: a sentence has no pieces of the vocabulary"),
        (found.ties, "pairs are ties, and count one half"),
        (found.windowed, "sentences are longer than the model takes: each mask saw what fits"),
        (found.unknown, "sentences have words that the tokenizer does not know"))])


def verbs(context: Context) -> Measured:
    """Agreement of verbs with their subjects, by attractors."""
    rows, details, notes = [], {}, [f"Frequent and bigram are by counts of {context.counted}."]
    for path in context.tasks.agreement:
        found = agreement(context.model, context.tokenizer, read_agreement(path), counts=context.counts,
                          max_samples=context.sizes.verbs, seed=context.seed, threads=context.threads,
                          progress=lambda done, total: context.report("masking", done, total))
        scores = dict(found.total.accuracy)
        rows.append(Row(f"accuracy, {path.stem}", scores.pop("model"), scores,
                        sample=f"{found.total.sentences:,} sentences"))
        details[path.stem] = found.to_dict()
        notes += _counted((found.total.left_out, "verbs were left out: not both forms are one piece"),
                          (found.windowed, "sentences are longer than the model takes"))
    return Measured(rows, details, notes)


def facts(context: Context) -> Measured:
    """Cloze prompts about facts, and their negations."""
    found = probe_factual_knowledge(context.model, context.tokenizer, context.tasks.facts,
                                    max_samples=context.sizes.facts, seed=context.seed, threads=context.threads,
                                    progress=lambda done, total: context.report("asking", done, total))
    size = f"{found.facts:,} facts of {len(found.relations)} relations"
    rows = [Row(name, found.means[key], {"most frequent answer": found.means[f"frequent_{key}"]} | (
        {"negated prompt": found.means[f"negated_{key}"]} if f"negated_{key}" in found.means else {}), sample=size)
        for name, key in (("first answer right", "p_at_1"), ("right among ten answers", "p_at_10"))]
    return Measured(rows, found.to_dict(), [
        "Means over relations. The most frequent answer is known from the same facts. Knowledge would not give the "
        "same answer to a negated prompt.", *_counted(
            (found.left_out, "facts were left out: their objects are not one piece of the vocabulary"),
            (sum(relation.in_prompt for relation in found.relations), "answers stand in their prompts, to be copied"),
            (found.windowed, "prompts are longer than the model takes"))])


def words(context: Context) -> Measured:
    """Similarity of words as people judge it, and analogies."""
    text = context.text if context.sizes.contexts else None
    found = probe_semantic_knowledge(context.model, context.tokenizer, context.tasks.words, text=text,
                                     contexts=context.sizes.contexts or 1, max_samples=context.sizes.words,
                                     seed=context.seed, threads=context.threads,
                                     progress=lambda done, total: context.report("encoding", done, total))
    last, rows = str(context.model.config.num_layers), []
    for score in found.similarity:
        if score.layer in (STATIC, last) and score.spearman is not None:
            rows.append(Row(f"Spearman, {score.data}, {_vectors(score.layer)}", score.spearman, {"unrelated": 0.0},
                            score.untrained, NUMBER, f"{score.pairs:,} pairs"))
    for analogy in found.analogies:
        if analogy.section is None and analogy.layer in (STATIC, last):
            rows.append(Row(f"analogies, {analogy.data}, {_vectors(analogy.layer)}", analogy.accuracy,
                            {"nearest word": analogy.nearest}, analogy.untrained,
                            sample=f"{analogy.questions:,} questions, {analogy.candidates:,} words to choose from"))
    alone = "Contextual vectors are of each word as a sentence of its own." if text is None else \
        f"Contextual vectors are means over {found.sentences:,} contexts in the text."
    return Measured(rows, found.to_dict(), [alone, *_counted(
        (found.without_context, "words do not occur in the text and have static vectors alone"))])


def _vectors(layer: str) -> str:
    return "static vectors" if layer == STATIC else "last layer"


def _counted(*notes: tuple[int, str]) -> list[str]:
    return [f"{count:,} {text}." for count, text in notes if count]
