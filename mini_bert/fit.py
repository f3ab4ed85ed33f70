"""From text to a model in one call: vocabulary, corpus, training within a budget, evaluation, report.

    OUT/tokenizer      the vocabulary, learned or grown
    OUT/corpus         the text as tokens, a part of it held out
    OUT/run            the training; its best/ is the model
    OUT/fit.json       what was asked for, and what came of it
    OUT/report.html    the same for a person

Each part is whole or absent, so the same call again goes on where the last one was stopped.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from .core.config import ModelConfig
from .core.model import MiniBERT
from .errors import CheckpointError, ConfigError
from .evaluation.masked_lm import MaskedReport, evaluate_corpus
from .factory import load
from .files import write_files
from .inference.examples import Example, examples
from .inference.inputs import require_vocabulary
from .report.fit_page import fit_page
from .report.page import write_page
from .text.corpus import MANIFEST, Corpus
from .text.grow import grow_vocabulary
from .text.learn import count_words, learn_vocabulary
from .text.prepare import prepare
from .text.sources import ReadingReport, find_sources, paragraphs
from .text.tokenizer import WordPieceTokenizer
from .text.tokenizer_files import VOCAB
from .training.config import TrainingConfig, load_run_config
from .training.grow import grow_model
from .training.log import read_log
from .training.run import CONFIG, resume_run, start_run
from .training.trainer import Listener

RESULT, REPORT = "fit.json", "report.html"
_LONGEST_DOCUMENT = 4096      # tokens; longer ones are cut, so that some of any text can be held out
_HELD_OUT = 0.03              # of the documents
_EVALUATIONS = 20             # over the training
_BYTES_A_PIECE = 400          # a vocabulary larger than the text divided by this has pieces that hardly occur


@dataclass(frozen=True)
class Request:
    """What is asked for. A call with another request does not go on with this one's work."""

    sources: tuple[str, ...]
    budget: str = "30m"
    start: str | None = None              # the model to begin with; None for a new one
    config: str = "mini"                  # of a new model, and how it is trained
    changes: tuple[str, ...] = ()         # of the config, such as "training.learning_rate=5e-4"
    vocab_size: int | None = None         # None: what the text is enough for, 8,192 at the most
    new_words: int = 1000                 # of the text, added to the vocabulary of `start`
    cased: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Fitted:
    """What came of it."""

    model: Path                           # a directory for mini_bert.load and the commands' --model
    report: Path
    heldout: MaskedReport | None          # None if there was too little text to hold any out
    before: MaskedReport | None           # of the model to begin with, on the same text and masks
    examples: list[Example]
    facts: dict[str, Any]


Say = Callable[[str], None]


def fit(sources: str | PathLike[str] | Sequence[str | PathLike[str]], out: str | PathLike[str], *,
        budget: str = "30m", start: str | None = None, config: str = "mini", changes: Sequence[str] = (),
        vocab_size: int | None = None, new_words: int = 1000, cased: bool = False, seed: int = 0,
        listener: Listener | None = None, say: Say = lambda sentence: None) -> Fitted | None:
    """Make a model of the text in `sources`: files, folders, patterns, or names such as "pydocs".

    `start` is a shipped model or a directory to begin with; its vocabulary is kept and gains the text's own words.
    Returns None if training was interrupted: it is saved, and the same call goes on. The text is prepared by several
    processes, so a script that calls this needs `if __name__ == "__main__":`.
    """
    names = [sources] if isinstance(sources, str | PathLike) else list(sources)
    request = Request(tuple(str(name) for name in names), budget, start, config, tuple(changes), vocab_size,
                      new_words, cased, seed)
    if vocab_size is not None and start is not None:
        raise ConfigError("A model to begin with brings its vocabulary: give new_words, not vocab_size.")
    folder, began = Path(out), perf_counter()
    base = WordPieceTokenizer.load(start) if start is not None else None
    _claim(folder, request)
    tokenizer = _tokenizer(folder / "tokenizer", request, base, say)
    corpus = _corpus(folder / "corpus", request, tokenizer, say)
    run = folder / "run"
    initial = _initial(request, base, tokenizer)
    if (run / CONFIG).exists():
        trainer = resume_run(run, data=corpus.directory, listener=listener)
    else:
        model, training = _settings(request, len(tokenizer), initial)
        trainer = start_run(model, training, corpus.directory, run, initial=initial, listener=listener)
    say(f"Training {trainer.model.get_parameter_count():,} parameters for {budget}.")
    trainer.train()
    if trainer.interrupted is not None:
        return None
    say("Evaluating on the text that was held out.")
    best = run / ("best" if (run / "best").exists() else "final")
    network = load(best)
    there = bool(corpus.manifest.heldout_documents)
    length = trainer.config.max_seq_length
    fitted = Fitted(best, folder / REPORT,
                    evaluate_corpus(network, corpus, length=length) if there else None,
                    evaluate_corpus(initial, corpus, length=length) if there and initial is not None else None,
                    examples(network, corpus, seed=seed), {})
    facts = {"text": f"{corpus.manifest.bytes_read / 1e6:,.1f} MB, {corpus.manifest.tokens:,} tokens",
             "vocabulary": f"{len(tokenizer):,} pieces" + (f", {len(tokenizer) - len(base):,} of them new"
                                                           if base is not None else ""),
             "model": f"{network.get_parameter_count():,} parameters" + (f", from {start}" if start else ""),
             "training": f"{trainer.state.step:,} steps, {trainer.state.tokens:,} tokens, "
                         f"{trainer.state.seconds:,.0f} s on {trainer.config.threads} threads",
             "whole fit": f"{perf_counter() - began:,.0f} s"}
    fitted = replace(fitted, facts=facts)
    write_page(fitted.report, fit_page(
        f"A model of {', '.join(request.sources)}"[:100], facts, list(read_log(run)), heldout=fitted.heldout,
        before=fitted.before, found=fitted.examples))
    _record(folder, request, fitted)
    return fitted


def _claim(folder: Path, request: Request) -> None:
    """Refuse a directory with other things in it, or with the work of another request."""
    try:
        known = json.loads((folder / RESULT).read_bytes())["request"] if (folder / RESULT).exists() else None
    except (OSError, ValueError, KeyError, TypeError):
        known = {}
    asked = json.loads(json.dumps(asdict(request)))
    if known is None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder} exists already and is not empty; choose another directory.")
    if known is not None and known != asked:
        other = next((key for key in asked if known.get(key) != asked[key]), "request")
        raise CheckpointError(f"{folder} holds a fit with another {other.replace('_', ' ')} "
                              f"({known.get(other)!r}, not {asked[other]!r}); choose another directory, or remove it.")
    if known is None:
        find_sources(request.sources)             # refused before anything is written
        load_run_config(request.config, [*request.changes, f"training.budget={request.budget}"])
        write_files(folder, {RESULT: _json({"request": asked})})


def _tokenizer(folder: Path, request: Request, base: WordPieceTokenizer | None, say: Say) -> WordPieceTokenizer:
    if (folder / VOCAB).exists():
        return WordPieceTokenizer.load(folder)
    reading = ReadingReport()
    texts = (text for text in paragraphs(find_sources(request.sources), reading) if text is not None)
    if base is not None:
        words = count_words(texts, base.lowercase, base.strip_accents)
        tokenizer = grow_vocabulary(base, words, request.new_words)
        say(f"The vocabulary of {request.start} grows by {len(tokenizer) - len(base):,} words of the text.")
    else:
        words = count_words(texts, lowercase=not request.cased)
        size = request.vocab_size or max(512, min(8192, reading.bytes_read // _BYTES_A_PIECE))
        tokenizer = WordPieceTokenizer(learn_vocabulary(words, size, alphabet_limit=min(1000, size // 4)),
                                       lowercase=not request.cased)
        say(f"Learned a vocabulary of {len(tokenizer):,} pieces from {reading.bytes_read / 1e6:,.1f} MB.")
    tokenizer.save(folder)
    return tokenizer


def _corpus(folder: Path, request: Request, tokenizer: WordPieceTokenizer, say: Say) -> Corpus:
    if not (folder / MANIFEST).exists():
        made = prepare(request.sources, tokenizer, folder, heldout=_HELD_OUT, longest_document=_LONGEST_DOCUMENT)
        say(f"{made.tokens:,} tokens in {made.documents:,} documents, {made.heldout_documents:,} of them held out.")
    return Corpus(folder)


def _initial(request: Request, base: WordPieceTokenizer | None, tokenizer: WordPieceTokenizer) -> MiniBERT | None:
    """The model to begin with, grown to the vocabulary."""
    if request.start is None or base is None:
        return None
    model = load(request.start)
    require_vocabulary(model, base)
    return grow_model(model, base, tokenizer)


def _settings(request: Request, vocab_size: int, initial: MiniBERT | None) -> tuple[ModelConfig, TrainingConfig]:
    budget = f"training.budget={request.budget}"
    size = [f"model.vocab_size={vocab_size}"] if initial is None else []
    model, training = load_run_config(
        request.config, [f"training.seed={request.seed}", f"training.evaluations={_EVALUATIONS}", budget,
                         *request.changes, *size])
    return (model if initial is None else initial.config), training


def _record(folder: Path, request: Request, fitted: Fitted) -> None:
    def figures(report: MaskedReport | None) -> dict[str, Any] | None:
        return None if report is None else {**asdict(report), "perplexity": report.perplexity}

    write_files(folder, {RESULT: _json({
        "request": asdict(request), "model": str(fitted.model.relative_to(folder)), "facts": fitted.facts,
        "heldout": figures(fitted.heldout), "before": figures(fitted.before),
        "examples": [{"text": example.text, "truth": example.truth,
                      "candidates": [(c.token, round(c.probability, 4)) for c in example.candidates]}
                     for example in fitted.examples]})})


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
