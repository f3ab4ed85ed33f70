"""One of every kind of file that the package reads: how to write it, and what reads it."""

import bz2
import gzip
import json
import lzma
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from safetensors.numpy import load_file, save_file

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.analysis.doctor.run_record import RunRecord, Unavailable
from mini_bert.configs import load_options
from mini_bert.core.storage.digests import DIGEST
from mini_bert.core.storage.pytorch_file import read_pytorch
from mini_bert.core.storage.safetensors_file import read_tensors
from mini_bert.core.task_model import TaskModel
from mini_bert.errors import MiniBertError
from mini_bert.evaluation.formats.agreement import read_agreement
from mini_bert.evaluation.formats.conll import read_conll
from mini_bert.evaluation.formats.conllu import has_entities, read_conllu
from mini_bert.evaluation.formats.lama import read_facts
from mini_bert.evaluation.formats.minimal_pairs import read_minimal_pairs
from mini_bert.evaluation.formats.reading import load_sentences
from mini_bert.evaluation.formats.squad import read_questions
from mini_bert.evaluation.formats.tables import read_labelled, read_table
from mini_bert.evaluation.formats.words import read_words
from mini_bert.evaluation.suite.result_cache import cached_result
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.exercises.progress import ProgressFile
from mini_bert.fit.request import read_result
from mini_bert.lab.experiment import Experiment
from mini_bert.lab.outcomes import kept
from mini_bert.lab.runs import Curve, read_curve
from mini_bert.report.figures import confusion, probe_accuracy, timeline
from mini_bert.text.byte_bpe.learn import count_words, learn_tokenizer
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.sources import ReadingReport, find_sources, paragraphs
from mini_bert.text.opening import load_tokenizer
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer as Tokenizer
from mini_bert.training.config import TrainingConfig, load_run_config
from mini_bert.training.loop import State
from mini_bert.training.runs.checkpoints import OPTIMISER, newest_checkpoint, read_arrays, read_state
from mini_bert.training.runs.log import Log, read_log
from mini_bert.training.runs.run import start_run

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "mat", ",", ".", "##s"]
CONFIG = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=8,
                     vocab_size=len(SPECIAL_TOKENS) + len(WORDS), max_seq_length=16)
TORCH_SAVED = ("zip.bin", "stream.bin")               # the forms since PyTorch 1.6 and before
TEXT = "the cat sat on a mat .\n\n" * 6 + "a dog ran .\n"
CONLLU = ("# global.Entity = GRP-etype\n# text = the cats sat\n1-2\tthecats\t_\t_\t_\t_\t_\t_\t_\t_\n"
          "1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\tEntity=(1-animal\n2\tcats\tcat\tNOUN\t_\t_\t3\tnsubj\t_\tEntity=1)\n"
          "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\tsat\tsit\tVERB\t_\t_\t0\troot\t_\t_\n\n"
          "1\tRun\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n")
SQUAD = {"data": [{"paragraphs": [{"context": "the cat sat", "qas": [
    {"id": "1", "question": "who?", "answers": [{"text": "cat", "answer_start": 4}]},
    {"id": "2", "question": "why?", "is_impossible": True, "answers": []}]}]}]}
FACT = {"sub_label": "Paris", "obj_label": "France", "masked_sentences": ["Paris is in [MASK]."],
        "masked_negations": ["Paris is not in [MASK]."]}
PAIR = {"sentence_good": "cats sit", "sentence_bad": "cats sits", "UID": "a", "linguistics_term": "b", "field": "c"}
YAML = ("# a config\nmodel:\n  num_layers: 2\n  hidden_size: 16\n  num_heads: 2\n  activation: gelu\n  dropout: 0.1\n"
        "training:\n  steps: 100\n  learning_rate: 1e-3\n  budget: 30m\n  bucket: false\n")


_LEVEL = {"mean": 0.5, "low": 0.4, "high": 0.6, "values": 3}
PROBE = {"rows": [{"probe": "linear", "layer": 0, "accuracy": _LEVEL, "random": _LEVEL, "control": _LEVEL}],
         "baselines": {"majority": {"accuracy": 0.3}}}


TIMELINE = {"format": 1, "run": "mini", "parameters": 9, "steps": [1, 4], "tokens": [0, 99], "panels": [
    {"name": "blimp", "title": "BLiMP", "unit": "share", "apart": apart, "columns": {"BLiMP": "all"}, "lines": [
        {"name": "all", "values": [0.5, None], "low": [0.4, None], "high": [0.6, None], "levels": {"chance": 0.5}}]}
    for apart in (False, True)], "sizes": {"pairs": 10}, "seed": 0, "notes": ["none"]}


class Subject(NamedTuple):
    """The files of a directory, and what reads them; `others` are files that are written but not changed."""

    write: Callable[[Path], object]
    read: Callable[[Path], object]
    files: tuple[str, ...]


def file(name: str, content: str, reader: Callable[[Path], object]) -> Subject:
    """A subject of one file."""
    return Subject(lambda folder: (folder / name).write_text(content, "utf-8"), lambda folder: reader(folder / name),
                   (name,))


def _tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


def _write_model(folder: Path) -> None:
    MiniBERT(CONFIG).save(folder)
    _tokenizer().save(folder)


def _write_parted(folder: Path) -> None:
    _write_model(folder / "0_Transformer")
    (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "0_Transformer", "type": "Transformer"}]')


def _read_model(folder: Path) -> object:
    with np.errstate(over="ignore", invalid="ignore"):    # of weights that are huge after a change
        return MiniBERT.load(folder).encode(np.array([[2, 5, 3]]))


OUTCOME = {"curve": {"name": "one", "seed": 0, "tokens": [9], "seconds": [0.5], "losses": [3.5]},
           "scores": {"loss": 3.0}}


def _write_outcome(folder: Path) -> None:
    kept(folder, "one-0", {"model": {"num_layers": 2}, "ruler": None}, lambda: OUTCOME)


def _read_outcome(folder: Path) -> object:
    read = kept(folder, "one-0", {"model": {"num_layers": 2}, "ruler": None}, dict)
    return Curve(**read["curve"]), read["scores"]


def _write_torch_saved(folder: Path) -> None:
    for name in TORCH_SAVED:
        shutil.copy(Path(__file__).parents[1] / "reference" / "torch_save" / name, folder)


def _read_torch_saved(folder: Path) -> object:
    return [read_pytorch(folder / name) for name in TORCH_SAVED]


def _read_tokenizer(folder: Path) -> object:
    tokenizer = Tokenizer.load(folder)
    return tokenizer.decode(tokenizer.encode("the cats sat on [MASK] mat."))


def _write_byte_bpe(folder: Path) -> None:
    learn_tokenizer(count_words([TEXT]), 280, layout="roberta").save(folder)


def _write_merges(folder: Path) -> None:
    _write_byte_bpe(folder)
    (folder / "tokenizer.json").unlink()


def _read_any_tokenizer(folder: Path) -> object:
    tokenizer = load_tokenizer(folder)
    tokenizer.align("the cats sat on <mask> mat.")
    tokenizer.encode_pair("a", "b")
    return tokenizer.decode(tokenizer.encode("the cats sat on <mask> mat.")), tokenizer.to_files()


def _write_task(folder: Path) -> None:
    save_task(folder, TaskModel(MiniBERT(CONFIG), "sequence", 2), _tokenizer(), "classify", ["no", "yes"], {})


def _write_corpus(folder: Path) -> None:
    (folder / "text.txt").write_text(TEXT)
    prepare([str(folder / "text.txt")], _tokenizer(), folder / "corpus", heldout=0.2, workers=1)


def _read_corpus(folder: Path) -> object:
    corpus = Corpus(folder / "corpus")
    return corpus.fingerprint(), corpus.piece_counts(), corpus.tokenizer


def _write_run(folder: Path) -> None:
    _write_corpus(folder)
    settings = TrainingConfig(steps=4, batch_size=4, warmup_steps=1, log_every=1, eval_every=2, eval_sequences=4,
                              checkpoint_every=2, threads=1)
    start_run(CONFIG, settings, folder / "corpus", folder / "run").train()


def _read_run(folder: Path) -> object:
    try:
        record = RunRecord.read(folder / "run")
        record.require_settings()
        found = record.training_curve, record.heldout_curve, record.step, record.finished, record.checkpoint
    except Unavailable as reason:         # what the doctor reports in place of a finding
        found = (str(reason),)
    read_curve(folder / "run", "run", 0)
    log = (folder / "run" / "log.jsonl").read_bytes()
    Log(folder / "run").truncate(2)
    (folder / "run" / "log.jsonl").write_bytes(log)
    return found, list(read_log(folder / "run"))


def _read_checkpoint(folder: Path) -> object:
    place = folder / "run" / "checkpoints" / "step-4"
    newest_checkpoint(place.parent)
    state = State.from_json(read_state(place))
    size = MiniBERT(CONFIG).params.flat.size
    return state, read_arrays(place / OPTIMISER, {name: np.zeros(size, np.float32) for name in ("m", "v")})


def _write_shards(folder: Path) -> None:
    """Weights in two files from elsewhere, without digests, and words that were added to the vocabulary."""
    _write_model(folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(sorted(weights))}
    for file in set(files.values()):
        save_file({name: weights[name] for name in weights if files[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    (folder / "added_tokens.json").write_text(json.dumps({"[MASK]": 4}))


def _write_older(folder: Path) -> None:
    """Weights that have their digests in a file of their own, as those that ship."""
    _write_model(folder)
    tensors, metadata = read_tensors(folder / "model.safetensors")
    (folder / "digests.json").write_text(json.dumps({name: metadata[name] for name in (DIGEST, "config_digest")}))
    save_file(tensors, folder / "model.safetensors")


def _write_compressed(folder: Path) -> None:
    for name, module in (("gz", gzip), ("xz", lzma), ("bz2", bz2)):
        (folder / f"text.{name}").write_bytes(module.compress(TEXT.encode()))


def _read_compressed(folder: Path) -> object:
    return list(paragraphs(find_sources([str(folder / f"text.{name}") for name in ("gz", "xz", "bz2")]),
                           ReadingReport()))


def _read_text(path: Path) -> object:
    return list(paragraphs(find_sources([str(path)]), ReadingReport()))


def _write_regression(folder: Path) -> None:
    model = TaskModel(MiniBERT(CONFIG), "sequence", 1, loss="squared_error(mean=2.5, scale=1.5)")
    save_task(folder, model, _tokenizer(), "regression", ["score"], {"columns": ["text"]})


def _cached(folder: Path) -> object:
    with patch.dict(os.environ, {"MINI_BERT_CACHE": str(folder / "cache")}):
        found = cached_result("test", {}, [], lambda: {"accuracy": 0.5, "rows": [1, 2, 3]})
    assert found == {"accuracy": 0.5, "rows": [1, 2, 3]}, "a changed entry is taken for the result"
    return found


def _write_cached(folder: Path) -> None:
    _cached(folder)
    entry, = (folder / "cache").iterdir()                     # its name is a digest
    (folder / "name").write_text(entry.name)
    (folder / "entry.json").write_bytes(entry.read_bytes())


def _read_cached(folder: Path) -> object:
    (folder / "cache" / (folder / "name").read_text()).write_bytes((folder / "entry.json").read_bytes())
    return _cached(folder)


def _load_agreement(path: Path) -> object:
    return read_agreement(path)


SUBJECTS: dict[str, Subject] = {
    "model": Subject(_write_model, _read_model, ("config.json", "model.safetensors")),
    "PyTorch's weights": Subject(_write_torch_saved, _read_torch_saved, TORCH_SAVED),
    "parts of a model": Subject(_write_parted, _read_model, ("modules.json", "0_Transformer/config.json")),
    "shards": Subject(_write_shards, lambda folder: (_read_model(folder), _read_tokenizer(folder)), (
        "model.safetensors.index.json", "part-0.safetensors", "added_tokens.json")),
    "older model": Subject(_write_older, _read_model, ("digests.json", "model.safetensors")),
    "tokenizer": Subject(_write_model, _read_tokenizer, ("vocab.txt", "tokenizer_config.json", "tokenizer.json")),
    "byte-level BPE": Subject(_write_byte_bpe, _read_any_tokenizer, ("tokenizer.json", "tokenizer_config.json")),
    "merges": Subject(_write_merges, _read_any_tokenizer, ("vocab.json", "merges.txt", "tokenizer_config.json")),
    "task model": Subject(_write_task, load_task, ("task.json", "task.safetensors")),
    "corpus": Subject(_write_corpus, _read_corpus, (
        "corpus/corpus.json", "corpus/tokens.bin", "corpus/sentences.bin", "corpus/documents.bin", "corpus/splits.bin",
        "corpus/checksums.bin", "corpus/vocab.txt", "corpus/tokenizer.json", "corpus/tokenizer_config.json")),
    "run": Subject(_write_run, _read_run, ("run/config.yaml", "run/log.jsonl")),
    "checkpoint": Subject(_write_run, _read_checkpoint, tuple(
        f"run/checkpoints/step-4/{name}" for name in ("state.json", "checksums.json", "optimiser.safetensors"))),
    "config": file("config.yaml", YAML, load_run_config),
    "options": file("options.yaml", "steps: 3\nlearning-rate: 1e-3\ntasks: [a, b]\n", load_options),
    "experiment": file("lab.yaml", "config: debug\nset: [training.steps=5]\nseeds: [0, 1]\nruns:\n  a: []\n"
                       "  b: [model.block=pre_ln]\n", Experiment.read),
    "outcome": Subject(_write_outcome, _read_outcome, ("outcomes/one-0.json",)),
    "CoNLL-U": file("some.conllu", CONLLU, lambda path: (has_entities(path), read_conllu(path))),
    "CoNLL": file("some.conll", "-DOCSTART- O\n\nthe O\ncat B-ANIMAL\nsat O\n\nParis B-PLACE\n", read_conll),
    "SQuAD": file("squad.json", json.dumps(SQUAD), read_questions),
    "questions": file("plain.json", json.dumps([{"question": "who?", "context": "a cat", "answer": "cat"}]),
                      read_questions),
    "CSV": file("table.csv", 'text;label\n"the ""cat""; a\nmat";1\na dog;0\nthe mat;1\n', read_labelled),
    "JSON lines": file("table.jsonl", '{"text": "the cat", "label": ["a", "b"]}\n{"text": "a dog", "label": []}\n',
                       partial(read_labelled, empty_labels=True)),
    "JSON table": file("table.json", '[{"text": "the cat", "score": 1.5}, {"text": "a dog", "score": 2}]',
                       read_labelled),
    "table of words": file("words.jsonl", '{"tokens": ["the", "cat"], "ner_tags": ["O", "B-ANIMAL"]}\n',
                           load_sentences),
    "UTF-16": Subject(lambda folder: (folder / "text.txt").write_bytes(TEXT.encode("utf-16")),
                      lambda folder: _read_text(folder / "text.txt"), ("text.txt",)),
    "HTML": file("page.html", "<html><head><meta charset='utf-8'></head><body><p>the <b>cat</b> &amp; a</p>"
                 "<pre>a\nb</pre><script>x</script></body></html>", _read_text),
    "task model of numbers": Subject(_write_regression, load_task, ("task.json",)),
    "TSV": file("table.tsv", "sentence\tlabel\nthe cat\t1\na dog\t0\n", read_table),
    "CoLA": file("cola.tsv", "gj04\t1\t\tthe cat sat\ngj04\t0\t*\tcat the\n", partial(read_table, labelled=False)),
    "facts": file("facts.jsonl", json.dumps(FACT) + "\n" + json.dumps(FACT) + "\n", read_facts),
    "minimal pairs": file("pairs.jsonl", json.dumps(PAIR) + "\n", read_minimal_pairs),
    "similarity": file("words.txt", "cat dog 3.5\ncat\tmat\t1\n", read_words),
    "analogies": file("analogies.txt", ": capitals\nParis France Rome Italy\n", read_words),
    "agreement": Subject(lambda folder: ((folder / "a.text").write_text("the cats sit <eos>\n"),
                                         (folder / "a.gold").write_text("2\tsit\tsits\t0\n")),
                         lambda folder: _load_agreement(folder / "a"), ("a.text", "a.gold")),
    "compressed text": Subject(_write_compressed, _read_compressed, ("text.gz", "text.xz", "text.bz2")),
    "cache": Subject(_write_cached, _read_cached, ("entry.json",)),
    "timeline": file("timeline.json", json.dumps(TIMELINE), timeline),
    "output of probe": file("probe.json", json.dumps(PROBE), probe_accuracy),
    "labels": file("labels.tsv", "yes\tno\nno\tno\nyes\tyes\n", confusion),
    "progress": Subject(lambda folder: ProgressFile(folder).note_hint("relu", 2), ProgressFile, ("exercises.json",)),
    "fit": file("fit.json", '{"request": {"sources": ["a"], "text": [["a", 3, 4]]}}',
                lambda path: read_result(path.parent)),
}


def outcome(subject: Subject, folder: Path) -> str:
    """What reading gives: "" for a result, or the sentence of a refusal; any other exception is a failure."""
    try:
        subject.read(folder)
    except MiniBertError as error:
        sentence = str(error)
        assert sentence.strip(), "the refusal says nothing"
        assert "\n" not in sentence, f"the refusal has several lines: {sentence!r}"
        assert len(sentence) < 3000, f"the refusal is {len(sentence)} characters long"
        return sentence
    return ""
