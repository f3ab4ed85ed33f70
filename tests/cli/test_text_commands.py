"""mini-bert tokenizer and data."""

import json

import pytest
from typer.testing import CliRunner

from mini_bert import CorpusError, VocabularyError
from mini_bert.cli.app import app

runner = CliRunner()
TEXT = "The cat sat on the mat. It looked at the cat.\n\nAnother document, about a dog and the cat.\n" * 3


@pytest.fixture
def made(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    result = runner.invoke(app, ["tokenizer", "train", str(tmp_path / "text.txt"), "--vocab-size", "60",
                                 "--out", str(tmp_path / "tokenizer"), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["vocab_size"] <= 60
    return tmp_path


def run(*arguments: object, stdin: str | None = None) -> dict:
    result = runner.invoke(app, [*map(str, arguments), "--json"], input=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_encode_decode_and_inspect(made):
    ids = run("tokenizer", "encode", "--tokenizer", made / "tokenizer", "The cat.")["ids"][0]
    assert (ids[0], ids[-1]) == (2, 3)
    assert run("tokenizer", "decode", "-t", made / "tokenizer", *ids)["texts"] == ["[CLS] the cat. [SEP]"]
    assert run("tokenizer", "encode", "-t", made / "tokenizer", stdin="the\ncat\n")["ids"][1][0] == 2
    words = run("tokenizer", "inspect", "-t", made / "tokenizer", "The cat.")["words"]
    assert [entry["word"] for entry in words] == ["The", "cat", "."]
    assert words[1]["characters"] == [4, 7]
    shown = runner.invoke(app, ["tokenizer", "inspect", "-t", str(made / "tokenizer"), "[bold] cat"])
    assert "[bold]" not in shown.stdout.replace(" ", "") or shown.exit_code == 0


def test_prepare_and_show(made):
    report = run("data", "prepare", made / "text.txt", "--tokenizer", made / "tokenizer", "--out", made / "corpus",
                 "--heldout", "0.3")
    assert report["duplicate_paragraphs"] == 4
    assert report["documents"] == 2
    shown = run("data", "show", made / "corpus", "--masking", "word", "--length", "16")
    assert shown["manifest"]["tokens"] == report["tokens"]
    assert shown["frequent"][0][0] in ("the", "cat")
    assert "[MASK]" in " ".join(row["text"] for row in shown["batch"])
    assert "documents" in runner.invoke(app, ["data", "show", str(made / "corpus")]).stdout


@pytest.mark.parametrize(("arguments", "error"), [
    (("tokenizer", "train", "absent.txt", "--out", "x"), CorpusError),
    (("tokenizer", "encode", "-t", "absent", "text"), VocabularyError),
    (("data", "show", "absent"), CorpusError),
])
def test_missing_files_are_refused(arguments, error):
    result = runner.invoke(app, list(arguments))
    assert isinstance(result.exception, error)


def test_invalid_text_is_reported(made):
    (made / "bad.txt").write_bytes(b"the \xff cat\n")
    report = run("data", "prepare", made / "bad.txt", "-t", made / "tokenizer", "-o", made / "bad")
    assert report["invalid_bytes"] == 1
    assert report["first_invalid"].endswith("byte 4")
    result = runner.invoke(app, ["data", "prepare", str(made / "bad.txt"), "-t", str(made / "tokenizer"),
                                 "-o", str(made / "strict"), "--strict"])
    assert isinstance(result.exception, CorpusError)
    assert not (made / "strict").exists()
