"""The listeners for TensorBoard and Weights & Biases, with stand-ins for the libraries, and both at once."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import mini_bert

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXTS = [(f"a {word} film number {n}", word) for n in range(6) for word in ("good", "bad")]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sent(monkeypatch) -> dict[str, list]:
    """What the stand-ins were sent."""
    found: dict[str, list] = {"tensorboardX": [], "wandb": []}

    class SummaryWriter:
        def __init__(self, folder):
            found["tensorboardX"].append(folder)

        def add_scalar(self, tag, value, step):
            found["tensorboardX"].append((tag, value, step))

    class Run:
        def log(self, values, step):
            found["wandb"].append((values, step))

    def init(**options):
        found["wandb"].append(options)
        return Run()

    for name, parts in (("tensorboardX", {"SummaryWriter": SummaryWriter}), ("wandb", {"init": init})):
        module = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)
    return found


def test_both_hear_of_a_training_at_once(sent, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"The {n}th cat sat on the mat and slept.\n" for n in range(200)))
    listeners = [example("tensorboard_listener").TensorBoard("there"), example("wandb_listener").WeightsAndBiases()]
    mini_bert.fit(tmp_path / "text.txt", tmp_path / "made", budget="0.1s", config="debug", listener=listeners)
    folder, *scalars = sent["tensorboardX"]
    began, *logged = sent["wandb"]
    assert folder == "there"
    assert began["config"]["budget"] == "0.1s"
    tags = {tag for tag, _, _ in scalars}
    assert {"training/loss", "training/tokens", "training/learning_rate"} <= tags
    values, step = logged[-1]
    assert values["step"] == step
    assert ("training/loss", values["loss"], step) in scalars


def test_a_fine_tuning_is_logged_by_the_name_of_its_run(sent):
    listeners = [example("tensorboard_listener").TensorBoard("there"), example("wandb_listener").WeightsAndBiases()]
    mini_bert.finetune(TEXTS, random_init=False, epochs=1, seeds=2, threads=1, listener=listeners)
    assert {tag for tag, _, _ in sent["tensorboardX"][1:]} >= {"seed 0/score", "seed 1/loss"}
    assert [options["name"] for options in sent["wandb"] if "name" in options] == ["seed 0", "seed 1"]


@pytest.mark.parametrize("name", ["tensorboard_listener", "wandb_listener"])
def test_they_are_short_enough_to_be_copied(name):
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) <= 25
