"""mini-bert tokenizer and data: input from arguments, files and standard input, and what is refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from mini_bert import InputError, VocabularyError
from mini_bert.analysis.seen import SeenRow
from mini_bert.cli.app import app
from mini_bert.cli.train.data_show import _coloured
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

runner = CliRunner()
PIECES = [*SPECIAL_TOKENS, "the", "The", "cat", "sat", "."]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "vocab.txt").write_text("\n".join(PIECES))
    WordPieceTokenizer(PIECES).save(tmp_path / "tokenizer")
    (tmp_path / "text.txt").write_text("The cat sat. The cat.\n\nThe cat sat.\n")
    return tmp_path


def run(*arguments: object, **options) -> dict:
    result = runner.invoke(app, [*map(str, arguments), "--json"], **options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object, **options) -> str:
    result = runner.invoke(app, [*map(str, arguments)], **options)
    assert isinstance(result.exception, InputError | VocabularyError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.mark.parametrize("command", ["encode", "inspect", "decode"])
def test_a_bare_vocabulary_needs_cased_or_uncased(folder, command):
    text = "6" if command == "decode" else "The"
    assert "--cased or --uncased" in refused("tokenizer", command, "-t", folder / "bare", text)
    run("tokenizer", command, "-t", folder / "bare", "--uncased", text)
    said = refused("tokenizer", command, "-t", folder / "tokenizer", "--cased", text)
    assert "is uncased and cannot be opened as cased" in said


def test_cased_and_uncased_are_applied(folder):
    for option, number in (("--cased", 6), ("--uncased", 5)):
        assert run("tokenizer", "encode", "-t", folder / "bare" / "vocab.txt", option, "The")["ids"] == [[2, number, 3]]
        made = run("data", "prepare", folder / "text.txt", "-t", folder / "bare", option, "-o", folder / option)
        assert made["lowercase"] == (option == "--uncased")
    assert "--cased" in refused("data", "prepare", folder / "text.txt", "-t", folder / "bare", "-o", folder / "x")


@pytest.mark.parametrize(("ids", "words"), [(["2", "10"], "0 to 9"), (["--", "-1"], "id -1"), (["seven"], "'seven'"),
                                            (["²"], "'²'"), (["1.0"], "'1.0'")])
def test_an_invalid_id_is_one_sentence(folder, ids, words):
    assert words in refused("tokenizer", "decode", "-t", folder / "tokenizer", *ids)


def test_lines_end_only_at_line_feeds(folder):
    text = "the cat\x0csat\u2028the\x85cat\n\ncat\r\n"
    assert len(run("tokenizer", "encode", "-t", folder / "tokenizer", input=text)["ids"]) == 3
    assert run("tokenizer", "encode", "-t", folder / "tokenizer", input="\ufeffcat")["ids"] == [[2, 7, 3]]
    assert run("tokenizer", "encode", "-t", folder / "tokenizer", input="")["ids"] == []


@pytest.mark.parametrize("name", ["encode", "inspect"])
def test_bytes_that_are_not_utf8_are_replaced_and_reported_or_refused(folder, name):
    command = ["tokenizer", name, "-t", str(folder / "tokenizer")]
    result = runner.invoke(app, [*command, "--json"], input=b"the \xff\xfe cat\n")
    assert json.loads(result.stdout)["invalid_bytes"] == 2
    assert result.stderr.count("\n") == 1
    assert "2 bytes were not UTF-8" in result.stderr
    assert "byte 4" in refused(*command, "--strict", input=b"the \xff\xfe cat\n")
    assert run(*command, "the \udcff cat")["invalid_bytes"] == 1


def test_a_long_decoded_text_is_one_line(folder):
    result = runner.invoke(app, ["tokenizer", "decode", "-t", str(folder / "tokenizer"), *["7"] * 200])
    assert result.stdout == " ".join(["cat"] * 200) + "\n"


# -------------------------------------------------------------------- training

def train(folder, out, *options: str) -> list[str]:
    return ["tokenizer", "train", str(folder / "text.txt"), "--vocab-size", "30", "--out", str(out), *options]


def test_training_replaces_a_tokenizer_only_with_overwrite(folder):
    before = (folder / "tokenizer" / "vocab.txt").read_text()
    assert "--overwrite" in refused(*train(folder, folder / "tokenizer"))
    assert (folder / "tokenizer" / "vocab.txt").read_text() == before
    run(*train(folder, folder / "tokenizer", "--overwrite"))
    assert (folder / "tokenizer" / "vocab.txt").read_text() != before
    (folder / "empty").mkdir()
    run(*train(folder, folder / "empty"))


def test_overwrite_replaces_only_a_tokenizer(folder):
    run("data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "-o", folder / "corpus")
    assert "files that are not a tokenizer's" in refused(*train(folder, folder / "corpus", "--overwrite"))


def test_the_output_directory_is_checked_before_any_text_is_read(folder):
    absent = folder / "absent.txt"
    assert "cannot be a directory" in refused("tokenizer", "train", absent, "--out", folder / "text.txt" / "x")
    assert "not empty" in refused("tokenizer", "train", absent, "--out", folder / "tokenizer")


def test_without_a_terminal_no_progress_is_printed(folder):
    done = subprocess.run([sys.executable, "-m", "mini_bert", *train(folder, folder / "new")], capture_output=True,
                          text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_a_vocabulary_smaller_than_its_size_is_said(folder):
    short, enough = (runner.invoke(app, train(folder, folder / "new", "--overwrite", "--vocab-size", size)).stdout
                     for size in ("5000", "21"))
    assert short.startswith("21 tokens, fewer than --vocab-size 5000, from ")
    assert enough.startswith("21 tokens from ")


# -------------------------------------------------------------------- data show

def test_a_pad_token_inside_the_text_is_shown():
    ids = np.array([2, 7, 0, 8, 3])
    shown = _coloured(WordPieceTokenizer(PIECES).vocabulary, SeenRow(ids, ids, np.zeros(5, bool)))
    assert shown.plain.split() == ["[CLS]", "cat", "[PAD]", "sat", "[SEP]"]


def test_a_directory_named_like_markup_is_shown_literally(folder):
    out = folder / "[bold]corpus[/nothing]"
    run("data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "-o", out)
    result = runner.invoke(app, ["data", "show", str(out)])
    assert result.exit_code == 0
    assert "[bold]corpus[/nothing]" in result.stdout.replace("\n", "")


# -------------------------------------------------------------------- byte-level BPE

def test_byte_level_bpe_is_learned_used_and_prepared_with(folder):
    made = run("tokenizer", "train", folder / "text.txt", "--kind", "byte_bpe", "--vocab-size", 268, "--out",
               folder / "bytes")
    assert (made["kind"], made["vocab_size"]) == ("byte_bpe", 268)
    ids = run("tokenizer", "encode", "-t", folder / "bytes", "The cat [MASK].")["ids"][0]
    assert (ids[0], ids[-1]) == (2, 3)
    assert 4 in ids
    assert run("tokenizer", "decode", "-t", folder / "bytes", *ids)["texts"] == ["[CLS]The cat[MASK].[SEP]"]
    words = run("tokenizer", "inspect", "-t", folder / "bytes", "The cat")["words"]
    assert [word["word"] for word in words] == ["The", "cat"]
    corpus = run("data", "prepare", folder / "text.txt", "-t", folder / "bytes", "--out", folder / "corpus",
                 "--heldout", 0)
    assert corpus["unknown_tokens"] == 0
    shown = run("data", "show", folder / "corpus")
    assert len(shown["batch"]) == 2


def test_an_option_of_another_kind_is_refused(folder):
    train = ("tokenizer", "train", folder / "text.txt", "--out", folder / "new")
    assert "layout is not one of" in refused(*train, "--layout", "roberta")
    assert "alphabet_limit is not one of" in refused(*train, "--kind", "byte_bpe", "--alphabet-limit", 9)
    assert "lowercase is not one of" in refused(*train, "--kind", "byte_bpe", "--uncased")
    assert "the nearest is 'byte_bpe'" in refused(*train, "--kind", "bytebpe")
    assert "choose bert, roberta, gpt2" in refused(*train, "--kind", "byte_bpe", "--layout", "t5")
    assert not (folder / "new").exists()
