"""Zero-shot tests: grammar, agreement, facts, words."""

from ...formats.agreement import read_agreement
from ...formats.minimal_pairs import read_minimal_pairs
from ...representations.similarity import STATIC, probe_semantic_knowledge
from ...zero_shot.agreement import agreement
from ...zero_shot.facts import probe_factual_knowledge
from ...zero_shot.minimal_pairs import CHANCE, minimal_pairs
from ..context import EvaluationContext
from ..rows import HIGHER, NUMBER, PartResult, SummaryRow


def grammar(context: EvaluationContext) -> PartResult:
    """Minimal pairs, by phenomenon."""
    pairs = [pair for path in context.tasks.pairs for pair in read_minimal_pairs(path)]
    found = minimal_pairs(context.model, context.tokenizer, pairs, counts=context.counts,
                          max_samples=context.sizes.pairs, seed=context.seed, threads=context.threads,
                          progress=lambda done, total: context.report("masking", done, total))
    average = found.average
    row = SummaryRow(f"average of {len(found.paradigms)} paradigms", average["token"],
                     {"chance": CHANCE, "unigram": average["unigram"], "bigram": average["bigram"]},
                     sample=f"{found.pairs:,} pairs", better=HIGHER)
    return PartResult([row], found.to_dict(), [f"Unigram and bigram use counts of {context.counted}.", *_counted(
        (found.left_out, "pairs were left out, because a sentence has no pieces of the vocabulary"),
        (found.ties, "pairs are ties and count one half"),
        (found.windowed, "sentences are longer than the model's maximum: each mask saw the window around it"),
        (found.unknown, "sentences have words unknown to the tokenizer"))])


def verbs(context: EvaluationContext) -> PartResult:
    """Subject-verb agreement, by number of attractors."""
    rows, details, notes = [], {}, [f"Frequent and bigram use counts of {context.counted}."]
    for path in context.tasks.agreement:
        found = agreement(context.model, context.tokenizer, read_agreement(path), counts=context.counts,
                          max_samples=context.sizes.verbs, seed=context.seed, threads=context.threads,
                          progress=lambda done, total: context.report("masking", done, total))
        scores = dict(found.total.accuracy)
        rows.append(SummaryRow(f"accuracy, {path.stem}", scores.pop("model"), scores,
                               sample=f"{found.total.sentences:,} sentences", better=HIGHER))
        details[path.stem] = found.to_dict()
        notes += _counted((found.total.left_out, "verbs were left out, because not both forms are single pieces"),
                          (found.windowed, "sentences are longer than the model's maximum"))
    return PartResult(rows, details, notes)


def facts(context: EvaluationContext) -> PartResult:
    """Cloze prompts about facts, and their negations."""
    found = probe_factual_knowledge(context.model, context.tokenizer, context.tasks.facts,
                                    max_samples=context.sizes.facts, seed=context.seed, threads=context.threads,
                                    progress=lambda done, total: context.report("asking", done, total))
    size = f"{found.facts:,} facts of {len(found.relations)} relations"
    rows = [SummaryRow(name, found.means[key], {"most frequent answer": found.means[f"frequent_{key}"]} | (
        {"negated prompt": found.means[f"negated_{key}"]} if f"negated_{key}" in found.means else {}), sample=size,
                       better=HIGHER)
        for name, key in (("first answer right", "p_at_1"), ("right among ten answers", "p_at_10"))]
    return PartResult(rows, found.to_dict(), [
        "Means over relations. The most frequent answer is taken from the same facts. A model that knows a fact would "
        "answer its negated prompt differently.", *_counted(
            (found.left_out, "facts were left out, because their objects are not single pieces of the vocabulary"),
            (sum(relation.in_prompt for relation in found.relations), "answers occur in their prompts"),
            (found.windowed, "prompts are longer than the model's maximum"))])


def words(context: EvaluationContext) -> PartResult:
    """Word similarity and analogies."""
    text = context.sources() if context.sizes.contexts else None
    found = probe_semantic_knowledge(context.model, context.tokenizer, context.tasks.words, text=text,
                                     contexts=context.sizes.contexts or 1, max_samples=context.sizes.words,
                                     seed=context.seed, threads=context.threads,
                                     progress=lambda done, total: context.report("encoding", done, total))
    last, rows = str(context.model.config.num_layers), []
    for score in found.similarity:
        if score.layer in (STATIC, last) and score.spearman is not None:
            rows.append(SummaryRow(f"Spearman, {score.data}, {_vectors(score.layer)}", score.spearman,
                                   {"unrelated": 0.0}, score.untrained, NUMBER, f"{score.pairs:,} pairs", HIGHER))
    for analogy in found.analogies:
        if analogy.section is None and analogy.layer in (STATIC, last):
            rows.append(SummaryRow(f"analogies, {analogy.data}, {_vectors(analogy.layer)}", analogy.accuracy,
                                   {"nearest word": analogy.nearest}, analogy.untrained,
                                   sample=f"{analogy.questions:,} questions, {analogy.candidates:,} candidates",
                                   better=HIGHER))
    alone = "Contextual vectors are those of each word alone as a sentence." if text is None else \
        f"Contextual vectors are means over {found.sentences:,} contexts in the text."
    return PartResult(rows, found.to_dict(), [alone, *_counted(
        (found.without_context, "words do not occur in the text and have only static vectors"))])


def _vectors(layer: str) -> str:
    return "static vectors" if layer == STATIC else "last layer"


def _counted(*notes: tuple[int, str]) -> list[str]:
    return [f"{count:,} {text}." for count, text in notes if count]
