"""mini-bert finetune and predict: options, early checks, and long lines."""

import json

import pytest
from safetensors.numpy import load_file, save_file
from task_files import CONFIG, run
from typer.testing import CliRunner

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.answers import word_spans
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.text.vocabulary import SPECIAL_TOKENS


def command(data, ending=".tsv", **options):
    given = {"model": data / "model", "train": data / f"train{ending}", "dev": data / f"dev{ending}", "epochs": 1,
             "max-samples": 20, **options}
    return ["finetune", "--no-random-init",
            *(str(part) for name, value in given.items() for part in (f"--{name}", value))]


def refused(*arguments) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code != 0
    return " ".join(str(done.exception or "").split()) + " " + " ".join(done.output.split())


def test_results_are_measured_on_the_test_set(data):
    found = run(*command(data, test=data / "train.tsv"))
    assert found["measured_on"] == "test"
    assert found["notes"]["test"] == 120                              # --max-samples leaves it whole
    assert found["notes"]["of test, also in train"] >= 20
    assert list(found["dev_figures"]) == list(found["figures"])
    assert found["cost"]["seconds"] > 0
    assert found["cost"]["peak_mb"] > 10
    again = run(*command(data, test=data / "train.tsv"))              # cached, with its original cost
    assert again["cost"] == found["cost"]
    shown = CliRunner().invoke(app, command(data, test=data / "train.tsv")).output
    assert "train: 20, dev: 20, test: 120" in shown
    assert f"with a peak of {found['cost']['peak_mb']:,.0f} MB of memory" in shown
    assert "Measured on the test set" in shown
    assert "which also stopped training" in CliRunner().invoke(app, command(data)).output
    assert run(*command(data, test=data / "dev.tsv"))["notes"]["of test, also in train"] < 40


def test_a_learning_rate_of_zero_is_not_replaced_by_the_default(data):
    """With a learning rate of zero, more epochs give the same results."""
    still = run(*command(data, **{"learning-rate": 0}), "--seeds", "1")
    assert still["figures"] == run(*command(data, **{"learning-rate": 0, "epochs": 3}))["figures"]
    assert still["mean"]["accuracy"]["low"] is None


def test_a_learning_rate_is_found_on_the_training_data_and_used(data):
    found = run(*command(data, epochs=2, **{"max-samples": 40}), "--find-lr")
    search = found["search"]
    assert search["suggestion"] in search["rates"]
    assert search["suggestion"] < (search["burst"] or 1)
    assert min(loss for loss in search["losses"] if loss is not None) < search["start"]
    given = run(*command(data, epochs=2, **{"max-samples": 40, "learning-rate": search["suggestion"]}))
    assert found["figures"] == given["figures"]
    assert "give only one of them" in refused(*command(data, **{"learning-rate": 1e-3}), "--find-lr")


def test_the_saved_model_is_always_the_measured_one(data, tmp_path):
    out = tmp_path / "out"
    first = run(*command(data, seed=0), "--out", out)
    weights = load_task(out).model.params.flat.copy()
    run(*command(data, seed=1), "--out", out)
    assert (load_task(out).model.params.flat != weights).any()
    again = run(*command(data, seed=0), "--out", out)                 # cached, but the directory has another model
    assert again["figures"] == first["figures"]
    assert (load_task(out).model.params.flat == weights).all()


def test_pairs_are_recognised_by_the_data_not_by_the_task_name(data, tmp_path):
    run(*command(data, ".pairs.tsv", task="classification"), "--out", tmp_path / "pairs")
    assert json.loads((tmp_path / "pairs/task.json").read_text())["pairs"] is True
    (found,) = run("predict", "--model", tmp_path / "pairs", "good film\tthe plot")["answers"]
    assert found["answer"] in ("both", "other")
    assert "takes two texts separated by a tab" in refused("predict", "--model", tmp_path / "pairs", "good film")
    assert "has single texts; the task pair needs two columns" in refused(*command(data, task="pair"))
    mixed = refused(*command(data, task="classification"), "--test", data / "dev.pairs.tsv")
    assert "dev.pairs.tsv has pairs of texts, but the training data begins with single texts" in mixed


def test_errors_are_raised_before_training(data, tmp_path, monkeypatch):
    def trained(*arguments, **options):
        raise AssertionError("it was trained")

    monkeypatch.setattr("mini_bert.api.finetune.run_task", trained)
    (tmp_path / "file").write_text("x")
    assert "file is a file" in refused(*command(data, out=tmp_path / "file"))
    assert "file is a file" in refused(*command(data, out=tmp_path / "file/below"))
    assert "is not empty and does not contain a task model" in refused(*command(data, out=data))
    assert "Cannot write /proc/model" in refused(*command(data, out="/proc/model"))
    assert "epochs cannot be set with --set; use the option --epochs" in refused(
        *command(data), "--set", "epochs=3")
    assert "There is no file or folder" in refused(*command(data, forgetting=tmp_path / "nowhere.txt"))
    assert "--forgetting cannot be standard input" in refused(*command(data, forgetting="-"))
    MiniBERT(ModelConfig(**{**CONFIG.to_dict(), "mlm_head": "none"})).save(tmp_path / "headless")
    WordPieceTokenizer.load(data / "model").save(tmp_path / "headless")
    assert "needs a model with an MLM head" in refused(*command(data, model=tmp_path / "headless",
                                                                forgetting=tmp_path / "file"))
    assert "it was trained" in refused(*command(data, out=tmp_path / "new/below"))        # a valid --out


def test_the_command_measures_a_curve_and_forgetting(data, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(["Anna lives in Paris. The film was good."] * 60))
    arguments = [*command(data, forgetting=tmp_path / "text.txt"), "--curve", "--learning-rate", "0.01"]
    found = run(*arguments)
    assert list(found["curve"]) == ["0.01", "0.03", "0.1", "0.3", "1.0"]
    assert found["curve"]["1.0"] == found["figures"]["accuracy"][0]
    assert all(0 <= value <= 1 for value in found["curve"].values())
    before, after = (found["forgetting"][when] for when in ("before", "after"))
    assert before["loss"] != after["loss"]                            # the encoder has changed
    shown = CliRunner().invoke(app, arguments).output
    assert "share of the data" in shown
    assert "filling masks" in shown
    frozen = [*command(data, forgetting=tmp_path), "--set", "freeze=embeddings layer_0 final_ln_gamma final_ln_beta"]
    kept = run(*frozen)["forgetting"]
    assert kept["before"] == kept["after"]                            # only the head was trained
    (tmp_path / "text.txt").write_text("\n".join(["The film was good."] * 60))
    assert run(*frozen)["forgetting"] != kept                         # the text in the folder has changed


# -------------------------------------------------------------------- predict


@pytest.fixture
def saved(tmp_path, tokenizer):
    """A task model whose answers are set by the bias of its head."""
    def make(head, labels, bias=()):
        model = TaskModel(MiniBERT(CONFIG), head, len(labels) or 2)
        if bias:
            model.params["task_W"][...] = 0
            model.params["task_b"][...] = bias
        save_task(tmp_path / head, model, tokenizer, "any", labels, {})
        return tmp_path / head
    return make


def test_a_text_without_tokens_has_no_answer_and_the_output_is_json(saved):
    output = CliRunner().invoke(app, ["predict", "--model", str(saved("span", [])), "who\t \u200b ", "who\tanna was",
                                      "--json"]).stdout
    assert "Infinity" not in output
    empty, other = json.loads(output)["answers"]
    assert (empty["answer"], empty["start"], empty["score"]) == ("", None, None)
    assert other["answer"]
    assert isinstance(other["score"], float)


def test_rows_of_a_table_have_entities_and_answers_too(saved, tmp_path):
    (tmp_path / "new.csv").write_bytes("id,text\n1,the U.S. l\u2019\u00c9t\u00e9\n2,Paris\n".encode("cp1252"))
    folder, out = saved("tokens", ["O", "I-LOC"], (0.0, 1.0)), tmp_path / "out.csv"
    named = ["predict", "--model", folder, "--data", tmp_path / "new.csv"]
    assert "not UTF-8; name the file's encoding with --encoding" in refused(*named)
    run(*named, "--encoding", "cp1252", "--out", out)
    assert out.read_text("utf-8").splitlines() == [
        "id,text,answer", "1,the U.S. l\u2019\u00c9t\u00e9,the U.S. l\u2019\u00c9t\u00e9 (LOC)", "2,Paris,Paris (LOC)"]
    (tmp_path / "asked.jsonl").write_text('{"id": 7, "question": "who", "context": "anna\\twas in paris"}\n')
    (found,) = run("predict", "--model", saved("span", []), "--data", tmp_path / "asked.jsonl")["answers"]
    assert found["text"] == "who\tanna was in paris"
    assert found["answer"] in found["text"]
    assert "This model takes pairs of texts" in refused("predict", "--model", tmp_path / "span", "--data",
                                                         tmp_path / "new.csv", "--encoding", "cp1252")
    assert "--encoding applies only to a table" in refused("predict", "--model", folder, "x", "--encoding", "cp1252")


def test_entities_are_shown_with_the_original_text(saved):
    folder = saved("tokens", ["O", "I-LOC"], (0.0, 1.0))
    (found,) = run("predict", "--model", folder, "the U.S., l\u2019\u00c9t\u00e9")["answers"]
    assert found["answer"] == "the U.S., l\u2019\u00c9t\u00e9 (LOC)"
    assert found["entities"] == [{"text": "the U.S., l\u2019\u00c9t\u00e9", "kind": "LOC", "start": 0, "end": 15}]


def test_words_and_their_offsets():
    line = " The U.S.\u00a0\u200bAnna's \u4e2d\u6587"
    found = list(word_spans(line))
    assert [placed.word for placed in found] == ["The", "U", ".", "S", ".", "Anna", "'", "s", "\u4e2d", "\u6587"]
    assert all(line[placed.start : placed.end] == placed.word for placed in found)


def test_lines_that_are_too_long_are_reported(saved):
    long = "good film " * 10
    folder = saved("sequence", ["a", "b"])
    answers = run("predict", "--model", folder, long, "good")["answers"]
    assert [answer["in_windows"] for answer in answers] == [True, False]
    shown = CliRunner().invoke(app, ["predict", "--model", str(folder), long, "good"]).output
    assert "1 of 2 lines were read in overlapping windows, because they have more than 16 tokens" in shown
    assert "windows" not in CliRunner().invoke(app, ["predict", "--model", str(folder), "good"]).output
    (words,) = run("predict", "--model", saved("tokens", ["O", "I-X"]), "film" + "s" * 20 + " good")["answers"]
    assert (words["in_parts"], words["words_cut"]) == (True, 1)
    asked = "who was " * 6 + "\t" + "the plot was bad . " * 4
    (answer,) = run("predict", "--model", saved("span", []), asked)["answers"]
    assert (answer["in_parts"], answer["question_cut"]) == (True, True)


def test_an_older_directory_without_the_pairs_field_uses_the_task_name(saved):
    folder = saved("sequence", ["a", "b"])
    content = json.loads((folder / "task.json").read_text())
    del content["pairs"]
    (folder / "task.json").write_text(json.dumps(content | {"task": "pair"}))
    save_file(load_file(folder / "task.safetensors"), folder / "task.safetensors")        # without digests
    assert load_task(folder).pairs
    assert len(load_task(folder).tokenizer) == len(SPECIAL_TOKENS) + 16
