"""mini_bert.finetune from Python: files or examples in memory, the command's defaults, and listeners."""

import inspect

import numpy as np
import pytest

import mini_bert
from mini_bert import ConfigError, Listener
from mini_bert.cli.train.finetune import finetune_command
from mini_bert.errors import DataError
from mini_bert.evaluation.formats.tables import Labelled

GOOD = ["a warm and funny film", "beautifully acted and well told", "a joy from start to end", "smart and moving"]
BAD = ["a dull and empty film", "badly acted and far too long", "a waste of time", "tired and without a plot"]
EXAMPLES = [(f"{text}, said critic {n}", label) for n in range(3)
            for texts, label in ((GOOD, "yes"), (BAD, "no")) for text in texts]
QUICK = {"random_init": False, "epochs": 2, "threads": 1}


class Heard(Listener):
    def __init__(self):
        self.names, self.steps, self.records, self.sentences = [], [], [], []

    def began(self, trainer):
        self.names.append(trainer.name)

    def stepped(self, state, loss):
        self.steps.append((state.step, state.total_steps, loss))

    def logged(self, record):
        self.records.append(record)

    def said(self, message):
        self.sentences.append(message)


def test_examples_in_memory_become_a_model_that_predicts(tmp_path):
    found = mini_bert.finetune(EXAMPLES, out=tmp_path / "made", seed=3, **QUICK)
    assert found.task == "classification"
    assert list(found.figures) == ["accuracy", "macro_f1"]
    assert "fine-tuned" in str(found)
    assert f"The model: {tmp_path / 'made'}" in repr(found)
    model = mini_bert.pipeline(found)
    assert model is found.pipeline
    again = mini_bert.pipeline(tmp_path / "made")
    assert [one.probabilities for one in again.predict(GOOD)] == [one.probabilities for one in model.predict(GOOD)]
    other = mini_bert.finetune([Labelled(text, None, label) for text, label in EXAMPLES], seed=3, **QUICK)
    assert np.array_equal(other.pipeline.model.params.flat, model.model.params.flat)


def test_listeners_hear_of_every_run_step_and_evaluation():
    heard, more = Heard(), Heard()
    mini_bert.finetune(EXAMPLES, listener=[heard, more], seeds=2, batch_size=8, **QUICK)
    assert heard.names == more.names == ["seed 0", "seed 1"]
    assert [step for step, _, _ in heard.steps] == [1, 2, 3, 4, 5, 6] * 2
    assert [record["epoch"] for record in heard.records] == [0, 1, 0, 1]
    assert all(0 <= record["score"] <= record["best"] <= 1 for record in heard.records)
    assert any("are set aside as the development set" in sentence for sentence in heard.sentences)


def test_a_listener_can_end_a_fine_tuning():
    class Stops(Listener):
        def stepped(self, state, loss):
            return state.step == 2

    found = mini_bert.finetune(EXAMPLES, listener=Stops(), batch_size=8, **QUICK)
    assert found.result.steps == [2]


def test_without_a_listener_nothing_is_printed_where_nobody_looks(capsys):
    mini_bert.finetune(EXAMPLES, **QUICK)
    assert capsys.readouterr() == ("", "")


def test_the_defaults_are_those_of_the_command():
    ours = inspect.signature(mini_bert.finetune).parameters
    theirs = inspect.signature(finetune_command).parameters
    lists = {"text_column", "label_column", "forgetting"}         # None there, and empty here
    both = ours.keys() & theirs.keys() - lists - {"train", "dev"}
    assert len(both) > 15
    assert {name: ours[name].default for name in both} == {name: theirs[name].default for name in both}
    fit, command = (inspect.signature(one).parameters for one in (mini_bert.fit.fit, __import__(
        "mini_bert.cli.train.fit", fromlist=["fit_command"]).fit_command))
    both = fit.keys() & command.keys() - {"sources", "out", "changes", "include"}
    assert {name: fit[name].default for name in both} == {name: command[name].default for name in both}


@pytest.mark.parametrize(("options", "error", "said"), [
    ({"learning_rate": 1e-3, "find_lr": True}, ConfigError, "give only one of them"),
    ({"settings": {"epochs": 3}}, ConfigError, r"epochs is not one of the settings; give it as epochs=\.\.\."),
    ({"settings": {"epoch": 3}}, ConfigError, "unknown key 'epoch'"),
    ({"teaching": {"weight": 0.5}}, ConfigError, "teacher_weight needs a teacher"),
    ({"task": "sentiments"}, ConfigError, "'sentiments' is not a choice"),
    ({"task": "ner", "metric": "mcc"}, ConfigError, "The task ner takes no metric"),
    ({"train": [("one text", "a"), "two"]}, ConfigError, "Example 1 is 'two'"),
    ({"train": [("one", "a"), ("two", "a")]}, DataError, "only the label 'a'")])
def test_what_does_not_fit_is_refused(options, error, said):
    with pytest.raises(error, match=said):
        mini_bert.finetune(**{"train": EXAMPLES, **QUICK, **options})
