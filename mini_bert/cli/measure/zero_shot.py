"""mini-bert blimp, agreement, facts and similarity: zero-shot tests."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ...evaluation.cost import with_cost
from ...evaluation.formats.agreement import agreement_files, read_agreement
from ...evaluation.formats.minimal_pairs import data_files, read_minimal_pairs
from ...evaluation.formats.named import require_files
from ...evaluation.ngrams import NgramCounts
from ...evaluation.representations.similarity import CONTEXTS, STATIC, probe_semantic_knowledge
from ...evaluation.statistics import Interval
from ...evaluation.suite.result_cache import cached_result
from ...evaluation.zero_shot.agreement import agreement
from ...evaluation.zero_shot.facts import probe_factual_knowledge
from ...evaluation.zero_shot.minimal_pairs import minimal_pairs
from ...text.corpora.corpus import MANIFEST
from ...text.tokenizer import Tokenizer
from ..output import FreshOption, Output, SeedOption, ThreadsOption, shown_cost, table
from ..use.inference import Model, files_of, opened

Train = Annotated[list[str] | None, typer.Option(
    "--train", metavar="PATH", help="The training text, whose n-grams the baselines count: a prepared corpus, or text "
                                    "files and folders; may be repeated.")]
_SCORERS = {"token": "model", "word": "whole words", "model": "model", "unigram": "unigram", "bigram": "bigram",
            "frequent": "frequent", "majority": "majority"}


# -------------------------------------------------------------------- shared by the commands

def _counted_files(train: list[str] | None) -> list[Path]:
    """The files of --train, which a cached result depends on."""
    if train and len(train) == 1 and (Path(train[0]) / MANIFEST).is_file():
        return [Path(train[0]) / MANIFEST, Path(train[0]) / "tokens.bin"]
    return files_of("--train", train)


def _names(paths: list[Path]) -> list[str]:
    """The names of data sets, which are part of a result."""
    return [path.stem for path in paths]


def _counts(train: list[str] | None, tokenizer: Tokenizer, output: Output) -> NgramCounts | None:
    if not train:
        return None
    output.say(f"Counting n-grams of {escape(', '.join(train))} ...")
    return NgramCounts.of(list(train), tokenizer)


def _shown(found: dict[str, Any] | None, digits: int = 1, scale: float = 100.0) -> str:
    return "–" if found is None else Interval(**found).shown(digits, scale)


def _notes(*notes: tuple[int, str]) -> list[str]:
    """The notes whose count is not zero."""
    return [text.format(f"{count:,}") for count, text in notes if count]


# -------------------------------------------------------------------- commands

def blimp_command(files: Annotated[list[str], typer.Argument(
                      metavar="FILE", help="Minimal pairs in BLiMP's JSONL, or folders of such files.")],
                  model: Model = "mini",
                  whole_words: Annotated[bool, typer.Option(
                      "--whole-words", help="Also score with the rest of the word masked; about a quarter "
                                            "slower.")] = False,
                  train: Train = None,
                  paradigms: Annotated[bool, typer.Option("--paradigms", help="Show every paradigm.")] = False,
                  max_samples: Annotated[int | None, typer.Option(
                      "--max-samples", min=1, help="Maximum number of pairs per paradigm, drawn by the seed.")] = None,
                  threads: ThreadsOption = 0, fresh: FreshOption = False, seed: SeedOption = 0,
                  *, output: Output) -> None:
    """Test grammar by minimal pairs: how often does the model find the grammatical sentence more likely?

    The score of a sentence is its pseudo-log-likelihood: each token is masked in turn. Ties count one half; intervals
    are Wilson's, at 95 %. With --train there are two baselines, a unigram and a bigram scorer of that text.

    Example: mini-bert blimp --model mini eval/blimp --train letters/ --whole-words
    """
    require_files(files, "minimal pairs are read from BLiMP's JSONL")
    paths, counted = data_files(files), _counted_files(train)

    def compute() -> dict[str, Any]:
        network, tokenizer = opened(model)
        pairs = [pair for path in paths for pair in read_minimal_pairs(path)]
        counts = _counts(train, tokenizer, output)
        with output.progress("masking") as progress:
            found = minimal_pairs(network, tokenizer, pairs, whole_words=whole_words, counts=counts,
                                  max_samples=max_samples, seed=seed, threads=threads, progress=progress)
        return {**found.to_dict(), "invalid_bytes": counts.invalid_bytes if counts is not None else 0}

    options = {"whole_words": whole_words, "train": train, "max_samples": max_samples, "seed": seed}
    found = cached_result("blimp", options, [model, *paths, *counted], with_cost(compute), fresh=fresh)
    shown: list[Any] = [_grammar_table("phenomenon", found["phenomena"], found), ""]
    if paradigms:
        shown += [_grammar_table("paradigm", found["paradigms"], found), ""]
    shown += _notes((found["left_out"], "{} pairs were left out, because a sentence has no pieces of the vocabulary."),
                    (found["ties"], "{} pairs are ties and count one half."),
                    (found["windowed"], "{} sentences were too long for the model: each mask saw the part around it."),
                    (found["unknown"], "{} sentences have words unknown to the tokenizer."),
                    (found["invalid_bytes"], "{} bytes of the counted text were not UTF-8 and were replaced."))
    if not train:
        shown.append("For a unigram and a bigram baseline, name the training text with --train.")
    output.result({"model": model, "files": [str(path) for path in paths], **options, **found}, *shown,
                  shown_cost(found))


def _grammar_table(what: str, groups: list[dict[str, Any]], found: dict[str, Any]) -> Table:
    scorers = list(found["average"])
    names = [_SCORERS[scorer] for scorer in scorers]
    rows = table(what, "pairs", *names, "chance", right=("pairs", *names, "chance"))
    chance = f"{100 * found['chance']:.1f}"
    for group in groups:
        rows.add_row(escape(group["name"]), f"{group['pairs']:,}",
                     *(_shown(group["accuracy"][scorer]) for scorer in scorers), chance)
    rows.add_row(f"[bold]average of {len(found['paradigms'])} paradigms[/bold]", f"{found['pairs']:,}",
                 *(f"[bold]{_shown(found['average'][scorer])}[/bold]" for scorer in scorers), chance)
    return rows


def agreement_command(file: Annotated[str, typer.Argument(
                          metavar="NAME", help="NAME, or one of the files NAME.text and NAME.gold.")],
                      model: Model = "mini", train: Train = None,
                      max_samples: Annotated[int | None, typer.Option(
                          "--max-samples", min=1, help="Maximum number of sentences, drawn by the seed.")] = None,
                      threads: ThreadsOption = 0, fresh: FreshOption = False, seed: SeedOption = 0,
                      *, output: Output) -> None:
    """Test whether a masked verb agrees with its subject, by the number of attractors between them.

    An attractor is a noun of the other number. Baselines: the more frequent form (in the text of --train, or else in
    the sentences without the masked verbs), a bigram scorer with --train, and the more frequent number.

    Example: mini-bert agreement --model mini eval/agreement/verbs.text --train letters/
    """
    require_files([file], "agreement is read from NAME.text and NAME.gold")
    paths, counted = list(agreement_files(file)), _counted_files(train)

    def compute() -> dict[str, Any]:
        network, tokenizer = opened(model)
        items = read_agreement(file)
        counts = _counts(train, tokenizer, output)
        with output.progress("masking") as progress:
            found = agreement(network, tokenizer, items, counts=counts, max_samples=max_samples, seed=seed,
                              threads=threads, progress=progress)
        return {**found.to_dict(), "invalid_bytes": counts.invalid_bytes if counts is not None else 0}

    options = {"train": train, "max_samples": max_samples, "seed": seed}
    found = cached_result("agreement", options, [model, *paths, *counted], with_cost(compute), fresh=fresh)
    scorers = list(found["total"]["accuracy"])
    names = [_SCORERS[scorer] for scorer in scorers]
    rows = table("attractors", "sentences", "left out", *names, right=("sentences", "left out", *names))
    for part in (*found["by_attractors"], found["total"]):
        rows.add_row("[bold]all[/bold]" if part["attractors"] is None else str(part["attractors"]),
                     f"{part['sentences']:,}", f"{part['left_out']:,}",
                     *(_shown(part["accuracy"][scorer]) for scorer in scorers))
    output.result(
        {"model": model, "files": [str(path) for path in paths], **options, **found}, rows, "",
        f"Most of the verbs are {found['majority']}.",
        *_notes((found["total"]["left_out"], "{} verbs were left out, because not both forms are single pieces."),
                (found["windowed"], "{} sentences were too long for the model: it saw the part around the verb."),
                (found["invalid_bytes"], "{} bytes of the counted text were not UTF-8 and were replaced.")),
        shown_cost(found))


def facts_command(files: Annotated[list[str], typer.Argument(
                      metavar="FILE", help="Prompts in LAMA's JSONL, one relation per file, or folders.")],
                  model: Model = "mini",
                  max_samples: Annotated[int | None, typer.Option(
                      "--max-samples", min=1, help="Maximum number of facts per relation, drawn by the seed.")] = None,
                  threads: ThreadsOption = 0, fresh: FreshOption = False, seed: SeedOption = 0,
                  *, output: Output) -> None:
    """Test facts with prompts such as The capital of Denmark is [MASK], and with their negations.

    P@1 and P@10: the answer is the model's first choice, or among its first ten, out of the whole vocabulary. For
    comparison: always giving the most frequent answer of the relation, and the model's choice among only the answers of
    the relation.

    Example: mini-bert facts --model mini eval/lama
    """
    require_files(files, "facts are read from LAMA's JSONL")
    paths = data_files(files)

    def compute() -> dict[str, Any]:
        network, tokenizer = opened(model)
        with output.progress("asking") as progress:
            return probe_factual_knowledge(network, tokenizer, paths, max_samples=max_samples, seed=seed,
                                           threads=threads, progress=progress).to_dict()

    options = {"max_samples": max_samples, "seed": seed}
    found = cached_result("facts", {**options, "names": _names(paths)}, [model, *paths], with_cost(compute),
                          fresh=fresh)
    columns = ("facts", "left out", "in prompt", "P@1", "P@10", "MRR", "negated P@1", "same answer", "among answers",
               "frequent P@1")
    rows = table("relation", *columns, right=columns)
    for part in found["relations"]:
        own, negated = part["prompts"], part["negations"]
        rows.add_row(escape(part["relation"]), f"{part['facts']:,}", f"{part['left_out']:,}", f"{part['in_prompt']:,}",
                     _shown(own["p_at_1"]), _shown(own["p_at_10"]), f"{100 * own['mrr']:.1f}",
                     _shown(None if negated is None else negated["p_at_1"]), _shown(part["same_answer"]),
                     _shown(part["among_objects"]), _shown(part["frequent"]["p_at_1"]))
    names = ("p_at_1", "p_at_10", "mrr", "negated_p_at_1", "same_answer", "among_objects", "frequent_p_at_1")
    in_prompt = sum(part["in_prompt"] for part in found["relations"])
    rows.add_row("[bold]mean[/bold]", f"{found['facts']:,}", f"{found['left_out']:,}", f"{in_prompt:,}",
                 *(f"[bold]{_shown(found['means'].get(name))}[/bold]" for name in names))
    without = ", ".join(found["left_out_relations"])
    output.result(
        {"model": model, "files": [str(path) for path in paths], **options, **found}, rows, "",
        *_notes((found["left_out"], "{} facts were left out, because their objects are not single pieces."),
                (in_prompt, "{} answers occur in their prompts and could be copied."),
                (found["windowed"], "{} prompts were too long for the model: it saw the part around the mask.")),
        *([f"Relations without any usable fact: {escape(without)}."] if without else []), shown_cost(found))


def similarity_command(files: Annotated[list[str], typer.Argument(
                           metavar="FILE", help="Pairs of words with scores, or analogies in Google's format.")],
                       model: Model = "mini",
                       text: Annotated[list[str] | None, typer.Option(
                           "--text", metavar="PATH", help="Text with contexts of the words; may be repeated. "
                                                          "Default: each word alone.")] = None,
                       layers: Annotated[list[int] | None, typer.Option(
                           "--layer", help="A layer, 0 for the embeddings; may be repeated. Default: all.")] = None,
                       contexts: Annotated[int, typer.Option(
                           "--contexts", min=1, help="Maximum number of contexts per word.")] = CONTEXTS,
                       max_samples: Annotated[int | None, typer.Option(
                           "--max-samples", min=1, help="Maximum number of pairs or questions per file.")] = None,
                       threads: ThreadsOption = 0, fresh: FreshOption = False, seed: SeedOption = 0,
                       *, output: Output) -> None:
    """Compare the similarity of words with human judgements (Spearman), and solve analogies (3CosAdd).

    Both are measured for static vectors and for the vectors of each layer. Baselines: an untrained model of the same
    shape and, for analogies, the word nearest to the third one.

    Example: mini-bert similarity --model mini eval/wordsim/words.txt eval/wordsim/analogies.txt --text letters/
    """
    require_files(files, "words are read from lines of pairs or analogies")
    paths, read = [Path(file) for file in files], files_of("--text", text)

    def compute() -> dict[str, Any]:
        network, tokenizer = opened(model)
        with output.progress("encoding") as progress:
            return probe_semantic_knowledge(network, tokenizer, paths, text=text or None, layers=layers or None,
                                            contexts=contexts, max_samples=max_samples, seed=seed, threads=threads,
                                            progress=progress).to_dict()

    options = {"text": text, "layers": layers or None, "contexts": contexts, "max_samples": max_samples, "seed": seed}
    found = cached_result("similarity", {**options, "names": _names(paths)}, [model, *paths, *read], with_cost(compute),
                          fresh=fresh)
    shown: list[Any] = []
    if found["similarity"]:
        rows = table("similarity", "vectors", "Spearman", "untrained", "pairs", "left out",
                     right=("Spearman", "untrained", "pairs", "left out"))
        for part in found["similarity"]:
            rows.add_row(escape(part["data"]), _layer(part["layer"]), _shown(part["spearman"], 3, 1),
                         _shown(part["untrained"], 3, 1), f"{part['pairs']:,}", f"{part['left_out']:,}")
        shown += [rows, ""]
    if found["analogies"]:
        numbers = ("3CosAdd", "nearest", "untrained", "questions", "left out", "candidates")
        rows = table("analogies", "vectors", *numbers, right=numbers)
        for part in found["analogies"]:
            if part["section"] is None or part["layer"] == STATIC:
                rows.add_row(escape(part["data"] if part["section"] is None else f"  {part['section']}"),
                             _layer(part["layer"]), _shown(part["accuracy"]), _shown(part["nearest"]),
                             _shown(part["untrained"]), f"{part['questions']:,}", f"{part['left_out']:,}",
                             f"{part['candidates']:,}")
        shown += [rows, ""]
    shown += _notes((found["sentences"], "{} sentences of the text were read."),
                    (found["without_context"], "{} words do not occur in the text and have only static vectors."),
                    (found["invalid_bytes"], "{} bytes of the text were not UTF-8 and were replaced."))
    output.result({"model": model, "files": files, **options, **found}, *shown, shown_cost(found))


def _layer(name: str) -> str:
    return name if name == STATIC else f"layer {name}"
