"""Files that an attack found: each gave a traceback, a hang or gigabytes, and gives one sentence now."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.configs import load_config, load_options
from mini_bert.core.config import ModelConfig
from mini_bert.core.storage.checksums import verify
from mini_bert.errors import (
    CheckpointError,
    ConfigError,
    CorpusError,
    DataError,
    InputError,
    MiniBertError,
    VocabularyError,
)
from mini_bert.evaluation.formats.lines import json_lines, numbered_lines
from mini_bert.evaluation.formats.squad import read_questions
from mini_bert.lab.experiment import Experiment
from mini_bert.readers import parse_json, parse_yaml, read_bytes, read_json, read_lines, read_text, read_yaml
from mini_bert.report.page import write_page
from mini_bert.serve.addresses import open_socket
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from mini_bert.training.config import TrainingConfig, parse_duration
from mini_bert.training.finder import find_learning_rate
from mini_bert.training.loop import State
from mini_bert.training.runs.log import Log, read_log
from mini_bert.training.runs.run import read_run

SMALL = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=8, vocab_size=30, max_seq_length=8)
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 12))


# -------------------------------------------------------------------- content

@pytest.mark.parametrize("text", [
    "[" * 2000, "{" * 2000, "- " * 2000, "a: !!timestamp x", MERGES, "a: &x [1]\nb: *x", "a: 1\na: 2",
    "a: " + "9" * 400,
    "!!python/object/apply:os.system [ls]", "a: !!set {b}", "a: !!binary xxx", "!!int x", "!!bool x", "!!map [1]",
    "? [a]\n: 1", "--- 1\n--- 2", "\0", "a: !x 1", "a: [1, 2", "!!float x", "!!int 1:59:59",
])
def test_yaml_beyond_plain_values_is_refused_at_once(text):
    begin = time.perf_counter()
    with pytest.raises(ConfigError, match="is not valid YAML") as refused:
        parse_yaml(text, ConfigError, "The file")
    assert "\n" not in str(refused.value)
    assert time.perf_counter() - begin < 5


def test_yaml_has_numbers_words_and_truths_and_no_times():
    values = parse_yaml("a: 1\nb: -1_000\nc: 0x1f\nd: 2.5\ne: 1.5e-3\nf: .inf\ng: true\nh: no\ni: ~\nj: 1:59:59\n"
                        "k: 2020-01-01\nl: 1e-4\nm: [a, {b: 1}]\nn: 010\n", ConfigError, "The file")
    assert values == {"a": 1, "b": -1000, "c": 31, "d": 2.5, "e": 0.0015, "f": float("inf"), "g": True, "h": False,
                      "i": None, "j": "1:59:59", "k": "2020-01-01", "l": "1e-4", "m": ["a", {"b": 1}], "n": "010"}


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 60 + "]" * 60, '{"a":' * 2000, '{"a": 1, "a": 2}', "NaN",
                                  "[-Infinity]", "9" * 5000, "9" * 50, '"\\ud800"', b"\xff", b"\xed\xa0\x80", "", "{",
                                  b"\xef\xbb\xbf{}"])
def test_json_beyond_plain_values_is_refused(text):
    with pytest.raises(DataError, match="cannot be read as JSON") as refused:
        parse_json(text, DataError, "The file")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(1 << 40)                            # takes no space
    with pytest.raises(ConfigError, match="is larger than"):
        read_yaml(tmp_path / "large.yaml", ConfigError)
    with pytest.raises(DataError, match="is larger than"):
        read_json(tmp_path / "large.yaml", DataError)
    with pytest.raises(DataError, match="line 1 is longer than"):
        next(read_lines(tmp_path / "large.yaml", DataError))


# -------------------------------------------------------------------- kinds of file

def _refuses(read, path: Path) -> None:
    begin = time.perf_counter()
    with pytest.raises(MiniBertError) as refused:
        read(path)
    assert time.perf_counter() - begin < 5
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(os.name != "posix", reason="needs FIFOs and devices")
@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "zero", "loop"])
@pytest.mark.parametrize("read", [
    lambda path: read_bytes(path, DataError), lambda path: read_text(path, DataError),
    lambda path: read_json(path, DataError), lambda path: read_yaml(path, DataError),
    lambda path: list(numbered_lines(path)), lambda path: list(json_lines(path)), Vocabulary.read, read_questions,
    load_config, load_options, Experiment.read,
], ids=["bytes", "text", "json", "yaml", "lines", "json lines", "vocabulary", "questions", "config", "options",
        "experiment"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, kind, read):
    path = tmp_path / "file.yaml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/tty", "zero": "/dev/zero", "loop": path}[kind])
    _refuses(read, path)


@pytest.mark.skipif(os.name != "posix", reason="needs FIFOs and devices")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "tokenizer.json",
                                  "tokenizer_config.json"])
@pytest.mark.parametrize("zero", [False, True])
def test_a_pipe_or_a_device_in_a_models_directory_is_refused_at_once(tmp_path, name, zero):
    MiniBERT(SMALL).save(tmp_path)
    WordPieceTokenizer([*SPECIAL_TOKENS, "a"]).save(tmp_path)
    (tmp_path / name).unlink()
    if zero:
        (tmp_path / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / name)
    _refuses(WordPieceTokenizer.load if "vocab" in name or "tokenizer" in name else MiniBERT.load, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="needs FIFOs")
@pytest.mark.parametrize("name", ["corpus.json", "tokens.bin"])
def test_a_pipe_in_a_corpus_is_refused_at_once(tmp_path, name):
    corpus = _corpus(tmp_path)
    (corpus / name).unlink()
    os.mkfifo(corpus / name)
    _refuses(Corpus, corpus)


@pytest.mark.skipif(os.name != "posix", reason="needs FIFOs")
def test_a_pipe_as_a_runs_log_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "log.jsonl")
    _refuses(lambda path: list(read_log(path)), tmp_path)
    os.mkfifo(tmp_path / "checksums.json")
    _refuses(lambda path: verify(path, {"config.json"}), tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sigterm_ends_a_command_that_waits_for_text(tmp_path):
    os.mkfifo(tmp_path / "text")                          # text may come through a pipe; nobody writes to this one
    process = subprocess.Popen([sys.executable, "-m", "mini_bert", "data", "prepare", str(tmp_path / "text"), "--out",
                                str(tmp_path / "out"), "--tokenizer", "mini"], stderr=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    time.sleep(3)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert time.monotonic() - begin < 20
    assert process.returncode != 0
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------- types of values

def test_a_log_with_values_of_other_types_is_read_without_them(tmp_path):
    good = '{"step": 1, "loss": 2.5, "layer_grad_norm": {"embeddings": 1.0}}\n'
    (tmp_path / "log.jsonl").write_text(good + '{"step": null}\n{"step": "x", "loss": 1}\n{"step": [], "loss": []}\n'
                                        + '{"step": 1e400}\n' + "[" * 3000 + "\n" + '{"step": 2, "loss": {"a": []}}\n'
                                        + '{"step": 3, "loss": null}\n{"step": ')
    assert [record["step"] for record in read_log(tmp_path)] == [1, 3]
    Log(tmp_path).truncate(2)
    assert [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == [1]


@pytest.mark.parametrize(("name", "value"), [("step", None), ("step", "3"), ("step", -1), ("tokens", 1.5),
                                             ("step", True),
                                             ("seconds", []), ("best_loss", "x"), ("skipped", 2**70), ("other", 1)])
def test_a_state_with_values_of_other_types_is_refused(name, value):
    with pytest.raises(CheckpointError, match="state has the"):
        State.from_json({**State(step=3).to_json(), name: value})


@pytest.mark.parametrize(("name", "value"), [("sources", 5), ("sources", [5]), ("options", []), ("tokens", "x"),
                                             ("vocab_digest", None), ("lowercase", 3), ("first_invalid", {}),
                                             ("dtype", ["uint16"]), ("tokens", True), ("documents", 10**30)])
def test_a_manifest_with_values_of_other_types_is_refused(tmp_path, name, value):
    corpus = _corpus(tmp_path)
    content = json.loads((corpus / "corpus.json").read_bytes())
    (corpus / "corpus.json").write_text(json.dumps({**content, name: value}))
    with pytest.raises(CorpusError, match="prepare the corpus again"):
        Corpus(corpus)


@pytest.mark.parametrize("value", [{"a": 1}, [], 5])
def test_a_tokenizer_class_that_is_no_word_is_refused(tmp_path, value):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "a"]) + "\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "tokenizer_class": value}))
    with pytest.raises(VocabularyError, match="tokenizer_class"):
        WordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize("text", ["[" * 2000, "model: {}\ntraining: []\ndata: {}\n", "model: 1", "3", "",
                                  "model: {}\ntraining: {}\ndata: {corpus: 5, fingerprint: x}\n",
                                  "model: {}\ntraining: {}\ndata: {corpus: [], fingerprint: {}}\n"])
def test_a_runs_config_of_other_types_is_refused(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.yaml"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["runs: {a: 5}", "runs: {a: [5]}", "runs: {a: []}\nset: x", "runs: {a: []}\nseeds: 5",
                                  "runs: {a: []}\nseeds: [x]", "runs: {a: []}\nseeds: [-1]", "runs: []"])
def test_an_experiment_of_other_types_is_refused(tmp_path, text):
    (tmp_path / "lab.yaml").write_text(text)
    with pytest.raises(ConfigError):
        Experiment.read(tmp_path / "lab.yaml")


@pytest.mark.parametrize("part", ["..", "../other", "/etc", ".", "a/../.."])
def test_modules_json_does_not_lead_out_of_the_directory(tmp_path, part):
    MiniBERT(SMALL).save(tmp_path)                        # what .. would open
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "modules.json").write_text(json.dumps([{"path": part}]))
    with pytest.raises(CheckpointError, match="not a folder inside"):
        MiniBERT.load(tmp_path / "inside")


# -------------------------------------------------------------------- numbers and names

@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "d", "1e400", "4000d", "0s", "-1h"])
def test_a_budget_that_no_run_can_have_is_refused(text):
    with pytest.raises(ConfigError, match="is not a length of time"):
        parse_duration(text)
    with pytest.raises(ConfigError):
        TrainingConfig(budget=text)


@pytest.mark.parametrize("steps", [10**20, 10**9, 9])
def test_a_search_of_too_many_steps_is_refused(steps):
    with pytest.raises(ConfigError, match="10 to 100000 steps"):
        find_learning_rate(MiniBERT(SMALL), [], TrainingConfig(), steps=steps)


@pytest.mark.parametrize("number", ["9" * 23, str(1 << 63)])
def test_whole_numbers_that_no_state_could_hold_are_refused(number, tmp_path, capsys):
    with pytest.raises(ConfigError, match="steps must be a whole number up to"):
        TrainingConfig.from_dict({"steps": number})           # such a run could be saved, and never be resumed
    corpus = _corpus(tmp_path)
    for arguments in (["data", "show", str(corpus), "--length", number], ["memory", "--batch-size", number],
                      ["pretrain", "--data", str(corpus), "--out", str(tmp_path / "run"), "--steps", number]):
        with pytest.raises(InputError, match="must be a whole number up to"):
            app(arguments, standalone_mode=False)
    assert not (tmp_path / "run").exists()


def test_a_batch_larger_than_memory_is_one_sentence():
    with pytest.raises(MiniBertError, match="not enough memory for a step of 99,999,999,999,999 sequences"):
        app(["memory", "debug", "--batch-size", "99999999999999"], standalone_mode=False)


def test_memory_that_runs_out_is_one_sentence():
    program = ("import numpy as np\nimport mini_bert.cli, mini_bert.cli.app\n"
               "mini_bert.cli.app.app = lambda **options: np.empty(1 << 56)\nmini_bert.cli.main()")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 2
    assert done.stderr.startswith("mini-bert: There is not enough memory: Unable to allocate")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["\udcff", "a..b", "x" * 300, "a\0b"])
def test_a_host_that_cannot_be_is_one_sentence(host):
    with pytest.raises(ConfigError, match="Cannot listen"):
        open_socket(host, None, 8640)


def test_a_message_quotes_no_line_ends_and_no_controls():
    assert str(ConfigError("a\nb\x1b[2Jc\u2028")) == "a\\nb\\x1b[2Jc\\u2028"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_not_utf8_get_a_sentence(tmp_path):
    odd = os.fsencode(tmp_path) + b"/\xff\xfe.yaml"
    Path(os.fsdecode(odd)).write_text("[" * 100)
    for arguments in (["config", odd], ["data", "prepare", odd + b"x", "--out", "o", "--tokenizer", "mini"],
                      ["fill-mask", "--model", odd, "a [MASK]"], ["doctor", odd], ["resume", odd]):
        done = subprocess.run([sys.executable, "-m", "mini_bert", *arguments], capture_output=True, cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
        assert done.returncode == 2, (arguments, done)
        assert b"Traceback" not in done.stderr
        assert done.stderr.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_text_in_a_file_whose_name_is_not_utf8_makes_a_corpus_and_a_page(tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt"))
    odd.write_text("a b a\n\nb a\n")
    prepare([str(odd)], WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b"]), tmp_path / "corpus", workers=1)
    assert Corpus(tmp_path / "corpus").manifest.sources == [str(odd)]
    assert "udcff" in write_page(tmp_path / "page.html", f"<p>{odd}</p>").read_text()


def _corpus(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("a b a\n\nb a\n")
    prepare([str(tmp_path / "text.txt")], WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b"]), tmp_path / "corpus",
            workers=1)
    return tmp_path / "corpus"
