"""The stages of a fit, in order."""

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path

from ..core.model import MiniBERT
from ..errors import CorpusError, MiniBertError
from ..evaluation.masked_lm import Frequencies, evaluate_corpus
from ..factory import load
from ..inference.examples import examples
from ..report.fit_page import fit_page
from ..report.page import Step, write_page
from ..text.corpora.corpus import MANIFEST, Corpus
from ..text.corpora.prepare import prepare
from ..text.corpora.sources import ReadingReport, paragraphs
from ..text.opening import load_tokenizer
from ..text.tokenizer import Tokenizer
from ..text.tokenizer_files import TOKENIZER_JSON
from ..text.wordpiece.grow import grow_vocabulary
from ..text.wordpiece.learn import count_words, learn_vocabulary
from ..text.wordpiece.tokenizer import WordPieceTokenizer
from ..training.grow import grow_model
from ..training.loop import Listener, Listeners
from ..training.progress import heard
from ..training.runs.log import read_log
from ..training.runs.run import CONFIG, read_run, resume_run, start_run
from ..training.trainer import Trainer
from .request import LARGEST_VOCABULARY, NEW_WORDS, FitRequest, claim, read_result, release, write_result
from .result import FitResult, Stopped

REPORT = "report.html"
_LONGEST_DOCUMENT = 4096      # tokens; longer ones are split, so that part of any text can be held out
_HELD_OUT = 0.03              # of the documents
_PARAMETERS_PER_TOKEN = 10    # of a new model; with more, it has room for the text itself
_LEAST_TOKENS = 10_000        # for a model that has read other text
_LISTED = 5                   # files that were skipped
_BYTES_PER_PIECE = 400          # a larger vocabulary for the size of the text has pieces that hardly occur

Say = Callable[[str], None]


def fit(sources: str | PathLike[str] | Sequence[str | PathLike[str]], out: str | PathLike[str], *,
        budget: str = "30m", start: str | None = None, config: str = "mini", changes: Sequence[str] = (),
        vocab_size: int | None = None, new_words: int | None = None, cased: bool = False, seed: int = 0,
        include: Sequence[str] = (), text_column: str | None = None, encoding: str | None = None,
        strict: bool = False, listener: Listener | Sequence[Listener] | None = None) -> FitResult | Stopped:
    """Train a model on the text in `sources`: files, folders, patterns, or names such as "pydocs".

    `start` is an initial model, shipped or in a directory; its vocabulary is kept, and extended with words of the text.
    Of a folder, files that cannot be read are left out and listed, unless `strict`; `include` has patterns of those
    that are read, `text_column` names the column of tables, `encoding` that of text which is not
    UTF-8. The same call with another budget continues. One listener or several hear of the training; without any, a
    notebook or a terminal shows a progress bar.
    """
    listeners = heard(listener)
    names = [sources] if isinstance(sources, str | PathLike) else list(sources)
    request = FitRequest(tuple(str(name) for name in names), budget, start, config, tuple(changes), vocab_size,
                         new_words, cased, seed, tuple(include), text_column, encoding, strict)
    folder = Path(out)
    request.check(folder)
    with claim(folder, request):
        return _stages(folder, request, listeners, listeners.said)


def _stages(folder: Path, request: FitRequest, listener: Listeners, say: Say) -> FitResult | Stopped:
    """Each stage that is not there yet, in a directory that this process has locked."""
    try:
        tokenizer = _tokenizer(folder / "tokenizer", request, say)
    except MiniBertError:
        release(folder)
        raise
    corpus = _corpus(folder / "corpus", request, tokenizer, say)
    trainer = _trainer(folder / "run", request, tokenizer, corpus, listener, say)
    caution = _caution(request, trainer, corpus)
    if caution:
        say(caution)
    if trainer.state.step < trainer.state.total_steps:
        say(f"Training {trainer.model.get_parameter_count():,} parameters for {request.budget}.")
    trainer.train()
    if trainer.interrupted is not None:
        return Stopped(trainer.interrupted, trainer.saved == trainer.state.step)
    if corpus.has_words("heldout"):
        say("Evaluating on the held-out text.")
    return _result(folder, request, trainer, corpus, caution)


def _tokenizer(folder: Path, request: FitRequest, say: Say) -> WordPieceTokenizer:
    if (folder / TOKENIZER_JSON).exists():                 # written last
        return WordPieceTokenizer.load(folder)
    say("Counting the words of the text.")
    reading = ReadingReport()
    texts = (text for text in paragraphs(request.text(), reading, request.strict) if text is not None)
    if request.start is not None:
        base = WordPieceTokenizer.load(request.start)
        words = count_words(texts, base.lowercase, base.strip_accents)
        tokenizer = grow_vocabulary(base, words, NEW_WORDS if request.new_words is None else request.new_words)
        say(f"Added {len(tokenizer) - len(base):,} words of the text to the vocabulary of {request.start}.")
    else:
        words = count_words(texts, lowercase=not request.cased)
        enough = max(512, min(LARGEST_VOCABULARY, reading.bytes_read // _BYTES_PER_PIECE))
        size = enough if request.vocab_size is None else request.vocab_size
        tokenizer = WordPieceTokenizer(learn_vocabulary(words, size, alphabet_limit=max(1, size // 3)),
                                       lowercase=not request.cased)
        say(f"Learned a vocabulary of {len(tokenizer):,} pieces from {reading.bytes_read / 1e6:,.1f} MB.")
    tokenizer.save(folder)
    return tokenizer


def _corpus(folder: Path, request: FitRequest, tokenizer: WordPieceTokenizer, say: Say) -> Corpus:
    if not (folder / MANIFEST).exists():
        say("Preparing the corpus.")
        prepare(request.text(), tokenizer, folder, heldout=_HELD_OUT, longest_document=_LONGEST_DOCUMENT,
                strict=request.strict)
    corpus = Corpus(folder)
    manifest = corpus.manifest
    heldout = f"{manifest.heldout_documents:,} of them held out" if corpus.has_words("heldout") else \
        "too few to hold any out, so nothing can measure the model on text that it has not seen"
    say(f"{manifest.tokens:,} tokens in {_counted(manifest.documents, 'document')}, {heldout}.")
    for sentence in _dropped_text(corpus):
        say(sentence)
    if not corpus.has_words("train"):
        raise CorpusError("The vocabulary has no word of the text, so there is nothing to learn; try a larger one.")
    return corpus


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _dropped_text(corpus: Corpus) -> list[str]:
    """Sentences about text that was left out or replaced."""
    manifest, sentences = corpus.manifest, []
    if manifest.skipped:
        shown = [f"{Path(name).name} ({reason.removeprefix(name).strip(' ,:.')})"
                 for name, reason in list(manifest.skipped.items())[:_LISTED]]
        more = f", and {len(manifest.skipped) - _LISTED:,} more" if len(manifest.skipped) > _LISTED else ""
        sentences.append(f"{len(manifest.skipped):,} of {len(manifest.sources):,} files cannot be read and were "
                         f"skipped: {', '.join(shown)}{more}.")
    if manifest.duplicate_paragraphs:
        sentences.append(f"{manifest.duplicate_paragraphs:,} of {manifest.paragraphs:,} paragraphs are duplicates and "
                         "were left out.")
    if manifest.unknown_tokens:
        share = manifest.unknown_tokens / manifest.tokens
        sentences.append(f"{share:.2%} of the tokens are [UNK], not in the vocabulary.")
    if manifest.invalid_bytes:
        sentences.append(f"{manifest.invalid_bytes:,} bytes were not UTF-8 and were replaced; the first is "
                         f"{manifest.first_invalid}. If the text has another encoding, name it with --encoding.")
    return sentences


def _caution(request: FitRequest, trainer: Trainer, corpus: Corpus) -> str:
    """A sentence if there is little text for the model."""
    tokens, parameters = corpus.manifest.tokens, trainer.model.get_parameter_count()
    if request.start is not None:
        return "" if tokens >= _LEAST_TOKENS else (
            f"The text has only {tokens:,} tokens: the model will memorise it and learn little.")
    if tokens * _PARAMETERS_PER_TOKEN >= parameters:
        return ""
    smaller = "a smaller model (--config small), " if request.config == "mini" else ""
    return (f"The text has {tokens:,} tokens, few for a model of {parameters:,} parameters, which will memorise "
            f"them. For a better model, use more text, {smaller}or start from a trained model (--from mini).")


def _initial(request: FitRequest, tokenizer: Tokenizer) -> MiniBERT | None:
    """The initial model, extended to the vocabulary."""
    if request.start is None:
        return None
    return grow_model(load(request.start), load_tokenizer(request.start), tokenizer)


def _trainer(run: Path, request: FitRequest, tokenizer: WordPieceTokenizer, corpus: Corpus,
             listener: Listeners, say: Say) -> Trainer:
    if (run / CONFIG).exists():
        before = read_run(run)["training"].get("budget")
        if before == request.budget:
            return resume_run(run, data=corpus, listener=listener)
        trainer = resume_run(run, data=corpus, listener=listener, changes=[f"training.budget={request.budget}"])
        say(f"The budget was {before} and is now {request.budget}: training continues from step "
            f"{trainer.state.step:,}.")
        return trainer
    initial = _initial(request, tokenizer)
    model, training = request.settings(initial, len(tokenizer))
    return start_run(model, training, corpus, run, initial=initial, listener=listener)


def _result(folder: Path, request: FitRequest, trainer: Trainer, corpus: Corpus, caution: str) -> FitResult:
    run = folder / "run"
    best = run / ("best" if (run / "best").exists() else "final")
    model, initial = load(best), _initial(request, corpus.tokenizer)
    heldout = before = None
    if corpus.has_words("heldout"):
        frequencies = Frequencies(corpus, model.config.vocab_size)
        heldout, before = (None if network is None else evaluate_corpus(
            network, corpus, length=trainer.config.at(1.0).max_seq_length, threads=trainer.config.threads,
            frequencies=frequencies) for network in (model, initial))
    manifest, state = corpus.manifest, trainer.state
    new = len(corpus.tokenizer) - len(load_tokenizer(request.start)) if request.start is not None else 0
    facts = {"text": f"{manifest.bytes_read / 1e6:,.1f} MB, {manifest.tokens:,} tokens",
             "vocabulary": f"{len(corpus.tokenizer):,} pieces" + (f", {new:,} of them new" if request.start else ""),
             "model": f"{model.get_parameter_count():,} parameters" + (f", from {request.start}" if request.start
                                                                       else ""),
             "training": f"{_counted(state.step, 'step')}, {state.tokens:,} tokens, {state.seconds:,.0f} s on "
                         f"{_counted(trainer.config.threads, 'thread')}"}
    if lost := _dropped_text(corpus):
        facts["left out"] = " ".join(lost)
    if caution:
        facts["caution"] = caution
    fitted = FitResult(best, folder / REPORT, heldout, before, examples(model, corpus, seed=request.seed), facts)
    use = ["mini-bert", "fill-mask", "--model", str(folder), "A text with [MASK]."]
    steps = [Step("Use the model", shlex.join(use)),
             Step("See how the training went", shlex.join(["mini-bert", "report", str(folder)]))]
    if caution:
        steps.insert(0, Step(caution))
    write_page(fitted.report, fit_page(
        f"{folder.resolve().name}: a model of {', '.join(request.sources)}"[:100], facts, list(read_log(run)),
        heldout=heldout, before=before, found=fitted.examples, command=request.command(folder), when=datetime.now(),
        steps=steps, masking_rates=trainer.config.schedule_of("masking_rate").values))
    write_result(folder, {**read_result(folder), "request": request.description(),
                          "model": str(best.relative_to(folder)), **fitted.to_dict()})
    return fitted
