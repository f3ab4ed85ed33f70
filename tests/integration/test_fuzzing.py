"""The parsers, fed with what hypothesis thinks of: the outcome is a result or a MiniBertError of one sentence.

PAST are contents that once gave a traceback, a hang or a message of several lines; they are kept.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torture.subjects import CONLLU, FACT, PAIR, SQUAD, SUBJECTS, YAML, outcome

from mini_bert.errors import DataError
from mini_bert.readers import parse_json, parse_yaml

ONE_FILE = ("config", "options", "experiment", "CoNLL-U", "CoNLL", "SQuAD", "questions", "TSV", "CoLA", "facts",
            "minimal pairs", "similarity", "analogies", "progress", "fit")
JSON = ("SQuAD", "questions", "facts", "minimal pairs", "progress", "fit")
# beside the texts of the subjects: words that mean something to one of the parsers
PARTS = ("\n", "\t", "\n\n", " ", ":", "-", "[", "]", "{", "}", ",", '"', "#", "|", "(", ")", "1", "0", "-1", "1.5",
         "1e400", "null", "true", "\\ud800", "\\u0000", "&a", "*a", "<<", "!!int ", "? ", "_", "B-X", "I-X", "O",
         "[MASK]", "label", "sentence", "9" * 60, "1:59:59", "\ufeff", "\u2028", "é", "𝔸", "-DOCSTART-", "Entity=(1-x",
         "1-2", "1.1", "<eos>")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-10**25, 10**25) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["data", "paragraphs", "qas", "x [MASK]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["data", "paragraphs", "qas", "context", "question", "answers", "answer", "text", "answer_start", "id",
         "passed", "hints", "sub_label", "obj_label", "masked_sentences", "masked_negations", "request", "UID",
         "relu"]), inner, max_size=5), max_leaves=12)
ALIAS = re.compile(r"[&*]id\d")
MANY = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def read(kind: str, content: bytes) -> str:
    """The outcome of reading a subject of one file with this content."""
    subject = SUBJECTS[kind]
    with TemporaryDirectory() as folder:
        (Path(folder) / subject.files[0]).write_bytes(content)
        return outcome(subject, Path(folder))


@pytest.mark.parametrize("kind", ONE_FILE)
@MANY
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(kind, content):
    read(kind, content)


@pytest.mark.parametrize("kind", ONE_FILE)
@MANY
@given(parts=st.lists(st.sampled_from(PARTS) | st.sampled_from(
    [line + "\n" for text in (CONLLU, YAML, json.dumps(FACT), json.dumps(PAIR), json.dumps(SQUAD), "sentence\tlabel")
     for line in text.splitlines()]), max_size=30))
def test_any_mixture_of_the_formats_is_read_or_refused(kind, parts):
    read(kind, "".join(parts).encode())


@pytest.mark.parametrize("kind", JSON)
@MANY
@given(value=JSON_VALUES)
def test_any_json_is_read_or_refused(kind, value):
    read(kind, json.dumps(value).encode())


@pytest.mark.parametrize("kind", ["model", "tokenizer"])
@settings(max_examples=60, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=120), values=JSON_VALUES, prefix=st.integers(0, 2**64 - 1))
def test_any_header_of_weights_and_any_vocabulary_are_read_or_refused(kind, content, values, prefix, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / kind
    if not folder.exists():
        folder.mkdir()
        SUBJECTS[kind].write(folder)
    header = json.dumps(values).encode()
    for name in SUBJECTS[kind].files:
        before = (folder / name).read_bytes()
        for new in (content, header, len(header).to_bytes(8, "little") + header + content,
                    prefix.to_bytes(8, "little") + content):
            (folder / name).write_bytes(new)
            outcome(SUBJECTS[kind], folder)
        (folder / name).write_bytes(before)


@MANY
@given(value=JSON_VALUES)
def test_plain_values_survive_json(value):
    assert parse_json(json.dumps(value), DataError, "It") == value


@MANY
@given(value=JSON_VALUES)
def test_plain_values_survive_yaml(value):
    text = yaml.safe_dump(value)
    if not ALIAS.search(text):                # the library writes an object that occurs twice as an alias
        assert parse_yaml(text, DataError, "It") == value


PAST = [
    ("config", b"[" * 2000), ("config", b"model: {vocab_size: 1:59:59:59}"), ("config", b"model: !!timestamp x"),
    ("config", b"model: null\ntraining: 3"), ("config", b"training: {budget: " + b"9" * 400 + b"}"),
    ("config", b"training: {steps: .inf}"), ("config", b"training: {seed: [1]}"), ("config", b"\xff"),
    ("config", b"model: {? [a] : 1}"), ("options", b"[]"), ("experiment", b"runs: {a: 5}"),
    ("experiment", b"runs: {a: []}\nseeds: 5"), ("CoNLL-U", b"1\t" + b"\t" * 20), ("CoNLL-U", b"9" * 5000 + b"\t_" * 9),
    ("CoNLL-U", b"1\ta\t_\t_\t_\t_\t" + b"9" * 5000 + b"\t_\t_\t_"), ("CoNLL", b"a\tI-"), ("SQuAD", b"[" * 100_000),
    ("SQuAD", b'{"data": [{"paragraphs": [{"context": "a", "qas": [5]}]}]}'), ("SQuAD", b'{"data": [5]}'),
    ("questions", b'[{"question": "a", "context": "b", "answers": {"text": 5}}]'),
    ("TSV", b"sentence\tlabel\na\t1e999\n"),
    ("TSV", b"sentence\tlabel\na\tnan\n"), ("TSV", b""), ("facts", b'{"masked_sentences": [5]}'),
    ("minimal pairs", b"[" * 3000), ("similarity", b"a b 1e999"), ("similarity", b": "), ("progress", b"[" * 3000),
    ("progress", b'{"passed": [], "hints": {"relu": true}}'), ("fit", b"[" * 3000),
]


@pytest.mark.parametrize(("kind", "content"), PAST)
def test_what_once_failed_is_read_or_refused(kind, content):
    read(kind, content)
