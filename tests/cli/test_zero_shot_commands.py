"""blimp, agreement, facts and similarity, as a user or a script calls them."""

import json
import sys

import pytest
import typer
from typer.testing import CliRunner

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.measure.zero_shot import agreement_command, blimp_command, facts_command, similarity_command
from mini_bert.cli.shared_options import with_shared_options
from mini_bert.errors import DataError, InputError
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = ["the", "cat", "cats", "sleeps", "sleep", "is", "are", "paris", "."]
runner = CliRunner()
app = typer.Typer(pretty_exceptions_enable=False)
for name, command in (("blimp", blimp_command), ("agreement", agreement_command), ("facts", facts_command),
                      ("similarity", similarity_command)):
    app.command(name)(with_shared_options(command, imports=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("zero-shot")
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
    MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=14,
                         max_seq_length=12)).save(made / "model")
    tokenizer.save(made / "model")
    (made / "pairs").mkdir()
    (made / "pairs" / "verbs.jsonl").write_text("".join(json.dumps({
        "sentence_good": f"the cat sleeps{'.' * n}", "sentence_bad": f"the cat sleep{'.' * n}", "UID": "verbs",
        "linguistics_term": "[agreement]", "field": "syntax"}) + "\n" for n in range(6)))
    (made / "verbs.text").write_text("the cat is .\nthe cats are .\n")
    (made / "verbs.gold").write_text("2\tis\tare\t0\n2\tare\tis\t1\n")
    (made / "P1.jsonl").write_text(json.dumps({
        "sub_label": "cat", "obj_label": "Paris", "masked_sentences": ["the cat is [MASK] ."],
        "masked_negations": ["the cats are [MASK] ."]}) + "\n")
    (made / "words.txt").write_text("cat cats 9\nsleep sleeps 8\ncat is 1\nparis are 0\n")
    (made / "questions.txt").write_text(": verbs\ncat cats sleeps sleep\ncat cats is are\n")
    (made / "text.txt").write_text("The cat sleeps.\nThe cats sleep.\n\nThe cat is the cat.\n")
    prepare([str(made / "text.txt")], tokenizer, made / "corpus", heldout=0, workers=1)
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))


def run(folder, *arguments: object) -> dict:
    result = runner.invoke(app, [*map(str, arguments), "--model", str(folder / "model"), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def shown(folder, *arguments: object) -> str:
    result = runner.invoke(app, [*map(str, arguments), "--model", str(folder / "model")])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_blimp(folder):
    found = run(folder, "blimp", folder / "pairs", "--whole-words", "--train", folder / "text.txt")
    assert set(found["average"]) == {"token", "word", "unigram", "bigram"}
    assert found["average"]["bigram"]["mean"] == 1
    assert (found["pairs"], found["paradigms"][0]["name"]) == (6, "verbs")
    text = shown(folder, "blimp", folder / "pairs" / "verbs.jsonl", "--train", folder / "corpus", "--paradigms")
    assert all(word in text for word in ("[agreement]", "average of 1 paradigms", "bigram", "chance", "50.0", "±"))
    assert "--train" in shown(folder, "blimp", folder / "pairs", "--max-samples", 2)


def test_agreement(folder):
    found = run(folder, "agreement", folder / "verbs", "--train", folder / "text.txt")
    assert [part["sentences"] for part in found["by_attractors"]] == [1, 1]
    assert set(found["total"]["accuracy"]) == {"model", "frequent", "bigram", "majority"}
    assert "attractors" in shown(folder, "agreement", folder / "verbs.text")


def test_facts(folder):
    found = run(folder, "facts", folder / "P1.jsonl")
    assert (found["facts"], found["left_out"]) == (1, 0)
    assert "same answer" in shown(folder, "facts", folder / "P1.jsonl")


def test_similarity(folder):
    files = (folder / "words.txt", folder / "questions.txt")
    found = run(folder, "similarity", *files, "--layer", 1, "--text", folder / "text.txt")
    assert [part["layer"] for part in found["similarity"]] == ["static", "1"]
    assert found["sentences"] > 0
    text = shown(folder, "similarity", *files)
    assert all(word in text for word in ("Spearman", "untrained", "3CosAdd", "nearest", "layer 0"))


@pytest.mark.parametrize("arguments", [("blimp", "pairs"), ("agreement", "verbs.text"), ("facts", "P1.jsonl"),
                                       ("similarity", "words.txt")], ids=lambda arguments: arguments[0])
def test_a_result_is_cached_and_fresh_computes_it_again(folder, monkeypatch, arguments):
    name, file = arguments
    first = run(folder, name, folder / file)
    calls = []
    module = sys.modules["mini_bert.cli.measure.zero_shot"]
    opened = module.opened
    monkeypatch.setattr(module, "opened", lambda model: calls.append(model) or opened(model))
    assert run(folder, name, folder / file, "--threads", 1) == first
    assert calls == []
    assert run(folder, name, folder / file, "--fresh") | {"cost": first["cost"]} == first         # except for the time
    run(folder, name, folder / file, "--max-samples", 1)
    assert len(calls) == 2


def test_changed_training_text_invalidates_the_cache(folder, tmp_path):
    train = tmp_path / "train.txt"
    train.write_text("the cat sleep.")
    first = run(folder, "blimp", folder / "pairs", "--train", train)
    train.write_text("the cat sleeps.")
    second = run(folder, "blimp", folder / "pairs", "--train", train)
    assert (first["average"]["bigram"]["mean"], second["average"]["bigram"]["mean"]) == (0, 1)


@pytest.mark.parametrize(("arguments", "error", "words"), [
    (("blimp", "absent"), DataError, "no file or folder absent"),
    (("blimp", "pairs", "--train", "-"), InputError, "--train cannot be standard input"),
    (("agreement", "absent"), DataError, "There is no file absent.text"),
    (("facts", "words.txt"), DataError, "words.txt, line 1 cannot be read as JSON"),
    (("similarity", "P1.jsonl"), DataError, "P1.jsonl, line 1"),
    (("similarity", "words.txt", "--text", "-"), InputError, "--text cannot be standard input"),
    (("similarity", "words.txt", "--layer", "7"), InputError, "no layer 7"),
])
def test_invalid_input_is_refused(folder, monkeypatch, arguments, error, words):
    monkeypatch.chdir(folder)
    result = runner.invoke(app, [*arguments, "--model", str(folder / "model")])
    assert isinstance(result.exception, error)
    assert words in str(result.exception)


def test_every_command_has_the_common_options_and_an_example():
    from typer.main import get_command

    for name, command in get_command(app).commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--seed", "--quiet", "--max-samples", "--threads", "--fresh"} <= options
        assert f"Example: mini-bert {name}" in command.help


def test_answers_in_the_prompt_and_the_number_of_candidates_are_shown(folder):
    model = ["--model", str(folder / "model")]
    wide = {"COLUMNS": "200"}
    assert "in prompt" in runner.invoke(app, ["facts", str(folder / "P1.jsonl"), *model], env=wide).output
    shown = runner.invoke(app, ["similarity", str(folder / "questions.txt"), *model], env=wide).output
    assert "candidates" in " ".join(shown.split())


def test_pairs_without_tokens_are_left_out_and_counted(folder, tmp_path):
    pair = {"sentence_good": "\u200b", "sentence_bad": "the cat", "UID": "x", "linguistics_term": "x", "field": "x"}
    text = (folder / "pairs/verbs.jsonl").read_text() + json.dumps(pair) + "\n"
    (tmp_path / "pairs.jsonl").write_text(text)
    shown = runner.invoke(app, ["blimp", str(tmp_path / "pairs.jsonl"), "--model", str(folder / "model")]).output
    assert "1 pairs were left out, because a sentence has no pieces" in " ".join(shown.split())


@pytest.mark.parametrize("command", ["blimp", "agreement", "facts", "similarity"])
def test_hub_names_are_refused(folder, command):
    error = runner.invoke(app, [command, "hub:nyu-mll/blimp", "--model", str(folder / "model")]).exception
    assert isinstance(error, InputError)
    assert "hub: names give texts with labels, named entities or questions" in str(error)
