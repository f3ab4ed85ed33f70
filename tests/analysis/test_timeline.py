"""The timeline: figures at every snapshot, cached, and kept in a light file that is read with care."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from timeline_run import make_run, make_tasks
from typer.testing import CliRunner

from mini_bert import CheckpointError, InputError, MiniBERT
from mini_bert.analysis.timeline import timeline as module
from mini_bert.analysis.timeline.data import TimelineSizes
from mini_bert.analysis.timeline.entry import NUMBER, chosen_entries
from mini_bert.analysis.timeline.record import Line, Panel, Timeline, read_timeline
from mini_bert.analysis.timeline.timeline import measure_timeline
from mini_bert.cli.app import app
from mini_bert.core.registry import restored_registry
from mini_bert.errors import DataError
from mini_bert.training.runs.log import read_log

SMALL = TimelineSizes(pairs=3, verbs=2, sentences=20, epochs=1, rank=4)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("timeline")
    make_run(folder)
    make_tasks(folder / "tasks")
    return folder


@pytest.fixture
def run(made, tmp_path, monkeypatch) -> Path:
    """A copy of the run, which a test may change, and a cache of its own."""
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def lines(found: Timeline) -> dict[str, dict[str, Line]]:
    return {panel.name: {line.name: line for line in panel.lines} for panel in found.panels}


def test_every_entry_is_measured_at_every_snapshot(made, run):
    found = measure_timeline(run, tasks=made / "tasks", sizes=SMALL, threads=1)
    assert (found.run, found.steps, found.notes) == ("run", [1, 3, 8], [])
    assert [panel.name for panel in found.panels] == list(chosen_entries())
    by_name = lines(found)
    assert {name: list(panel) for name, panel in by_name.items()} == {
        "loss": ["held-out"], "blimp": ["BLiMP"], "agreement": ["0 attractors", "1 attractor"],
        "phenomena": ["order", "subject verb agreement"], "pos": ["best layer"], "uuas": ["best layer", "embeddings"],
        "relations": ["nsubj", "obj", "det"], "dead_units": ["all layers", "layer 0", "layer 1"]}
    for panel in by_name.values():
        for line in panel.values():
            assert len(line.values) == len(line.low) == 3
            assert all(value is not None and np.isfinite(value) for value in line.values)
    last = next(record for record in read_log(run) if record["step"] == 8)
    assert found.tokens[-1] == last["tokens"]
    assert by_name["loss"]["held-out"].values[-1] == pytest.approx(last["eval_loss"], rel=1e-3)       # in float16
    assert by_name["loss"]["held-out"].levels.keys() == {"uniform", "by frequency"}
    assert by_name["phenomena"]["order"].levels["chance"] == 0.5
    assert by_name["phenomena"]["order"].levels["bigram"] == 1.0              # "the" is behind no noun
    assert by_name["agreement"]["1 attractor"].levels.keys() == {"chance", "bigram"}
    assert by_name["pos"]["best layer"].levels["memory of words"] == 1.0      # each word has one tag
    assert by_name["uuas"]["embeddings"].levels["linear chain"] == pytest.approx(0.75)        # but "sees ... cat"
    assert by_name["relations"]["nsubj"].levels["best place"] == 1.0          # the word before the verb
    assert by_name["blimp"]["BLiMP"].low[0] <= by_name["blimp"]["BLiMP"].values[0] <= by_name["blimp"]["BLiMP"].high[0]


def test_what_is_measured_is_not_measured_again_and_what_was_interrupted_goes_on(made, run, monkeypatch):
    asked: list[str] = []

    class StopError(Exception):
        pass

    def note(what: str, done: int, total: int) -> None:
        asked.append(what)
        if len(asked) == 3:
            raise StopError

    with pytest.raises(StopError):
        measure_timeline(run, tasks=made / "tasks", sizes=SMALL, only=["loss", "blimp"], report=note)
    opened = []
    load = MiniBERT.load
    monkeypatch.setattr(module.MiniBERT, "load", lambda place: opened.append(Path(place).name) or load(place))
    first = measure_timeline(run, tasks=made / "tasks", sizes=SMALL, only=["loss", "blimp"])
    assert opened[:2] == ["step-3", "step-8"]                 # step-1 was done before the interrupt
    opened.clear()
    again = measure_timeline(run, tasks=made / "tasks", sizes=SMALL, only=["loss", "blimp"])
    assert again == first
    assert opened == ["step-8"]                               # for its number of parameters
    shutil.copytree(run / "snapshots" / "step-1", run / "snapshots" / "step-2")           # the same content
    opened.clear()
    more = measure_timeline(run, tasks=made / "tasks", sizes=SMALL, only=["loss", "blimp"])
    assert opened == ["step-8"]
    assert lines(more)["loss"]["held-out"].values[0] == lines(more)["loss"]["held-out"].values[1]


OWN = """
import numpy as np
from mini_bert import register
from mini_bert.analysis.timeline.entry import NUMBER, TimelineEntry

def measure(model, tokenizer, data):
    return {"norm": float(np.linalg.norm(model.params.flat)), "none": None}

register("timeline", "weights")(TimelineEntry("Norm of the weights", measure, unit=NUMBER, columns={"|w|": "norm"}))
"""


def test_a_figure_of_ones_own_is_an_entry(run, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    with restored_registry():
        assert "|w|" in call("timeline", run, "--only", "loss,weights", "--import", tmp_path / "own.py")
    loss, panel = read_timeline(run).panels
    assert (loss.name, panel.title, panel.unit) == ("loss", "Norm of the weights", NUMBER)
    norms = [float(np.linalg.norm(MiniBERT.load(run / "snapshots" / f"step-{step}").params.flat)) for step in (1, 3, 8)]
    assert panel.lines[0].values == pytest.approx(norms, rel=1e-4)
    assert panel.lines[1].values == [None, None, None]
    with pytest.raises(InputError, match="no entry 'weights'; choose some of loss, blimp"):
        chosen_entries(["weights"])


def test_without_tasks_or_corpus_the_rest_is_measured_and_the_loss_is_that_of_the_log(made, run):
    found = measure_timeline(run, sizes=SMALL)
    assert [panel.name for panel in found.panels] == ["loss", "dead_units"]
    assert "Grammar (BLiMP) is not measured: it needs task data; name a folder with --tasks." in found.notes
    config = run / "config.yaml"
    config.write_text("\n".join(line for line in config.read_text().replace(str(made / "corpus"), "/gone").splitlines()
                                if not line.startswith("digest")))
    found = measure_timeline(run, tasks=made / "tasks", sizes=SMALL, only=["loss", "dead_units"])
    assert [panel.name for panel in found.panels] == ["loss", "dead_units"]   # on sentences of the treebank
    (held_out,) = found.panels[0].lines
    logged = {record["step"]: record["eval_loss"] for record in read_log(run) if "eval_loss" in record}
    assert held_out.values == [None, None, pytest.approx(logged[8], rel=1e-4)]        # it was not evaluated before 4
    assert any("from the run's log" in note for note in found.notes)
    measured = measure_timeline(run, data=made / "corpus", sizes=SMALL, only=["loss"])
    assert None not in measured.panels[0].lines[0].values


def test_without_snapshots_checkpoints_are_measured_and_damaged_ones_left_out(run):
    weights = run / "snapshots" / "step-3" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    found = measure_timeline(run, only=["loss"])
    assert found.steps == [1, 8]
    assert any("step-3 is left out" in note and "has changed" in note for note in found.notes)
    shutil.rmtree(run / "snapshots")
    assert measure_timeline(run, only=["loss"]).steps == [8]
    shutil.rmtree(run / "checkpoints")
    assert measure_timeline(run, only=["loss"]).steps == [8]                  # final
    shutil.rmtree(run / "final")
    with pytest.raises(CheckpointError, match=r"no snapshots .* training\.snapshots=20"):
        measure_timeline(run)


# ---------------------------------------------------------------- the file

def example(snapshots: int = 20) -> Timeline:
    """As large as they come: 45 lines with intervals."""
    rng = np.random.default_rng(0)
    values = [rng.random(snapshots).tolist() for _ in range(3)]
    each = [Line(f"a phenomenon with the number {i}", *values, {"chance": 0.5, "bigram": 0.123456789})
            for i in range(45)]
    return Timeline("mini", 4_498_880, [3**i for i in range(snapshots)], [1024 * 3**i for i in range(snapshots)],
                    [Panel("phenomena", "BLiMP by phenomenon", "share", True, {}, each)], {"pairs": 100}, 0, [])


def test_the_file_is_light_and_read_back(tmp_path):
    found = example()
    file = found.save(tmp_path)
    assert file.stat().st_size < 60_000
    assert read_timeline(file) == read_timeline(tmp_path)
    back = read_timeline(file)
    assert (back.steps, back.tokens, back.run) == (found.steps, found.tokens, "mini")
    assert back.panels[0].lines[3].values == pytest.approx(found.panels[0].lines[3].values, rel=1e-4)
    assert back.panels[0].lines[3].levels == {"chance": 0.5, "bigram": 0.12346}


@pytest.mark.parametrize(("change", "words"), [
    (lambda found: found.update(format=2), "its format is 2"), (lambda found: found.pop("tokens"), "no 'tokens'"),
    (lambda found: found["steps"].pop(), "3 snapshots|list of 3"), (lambda found: found.update(panels=3), "not a list"),
    (lambda found: found["panels"][0]["lines"][0]["values"].append(1), "list of 4"),
    (lambda found: found["panels"][0]["lines"][0].update(values=["a", 1, 2]), "a is not a number"),
    (lambda found: found["panels"][0].update(title=None), "None is not text"),
    (lambda found: found.update(steps=[-1, 2, 3]), "not a whole number")])
def test_a_damaged_file_is_one_sentence(tmp_path, change, words):
    file = example(3).save(tmp_path)
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match=f"is not a timeline: .*({words})"):
        read_timeline(file)


def test_a_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(DataError, match="mini-bert timeline RUN"):
        read_timeline(tmp_path)


# ---------------------------------------------------------------- the command

def test_the_command_writes_the_file_and_shows_a_row_for_each_snapshot(made, run, tmp_path):
    printed = call("timeline", run, "--tasks", made / "tasks", "--quick", "--only", "loss,blimp,agreement", "--threads",
                   1)
    rows = [line.split() for line in printed.splitlines() if line.split()[:1] in (["1"], ["3"], ["8"])]
    found = read_timeline(run)
    loss, blimp = (lines(found)[panel][line].values for panel, line in (("loss", "held-out"), ("blimp", "BLiMP")))
    assert printed.split()[:6] == ["step", "tokens", "loss", "BLiMP", "1", "attr."]
    assert [row[2:4] for row in rows] == [[f"{loss[i]:.3f}", f"{100 * blimp[i]:.1f}"] for i in range(3)]
    assert "mini-bert plot timeline" in printed
    data = json.loads(call("timeline", run, "--only", "loss", "--out", tmp_path / "elsewhere", "--json"))
    assert read_timeline(data["file"]).to_dict() == {key: value for key, value in data.items() if key != "file"}
    assert Path(data["file"]).parent == tmp_path / "elsewhere"
    assert [panel.name for panel in read_timeline(run).panels] == ["loss", "blimp", "agreement"]      # as it was


def test_the_picture_is_drawn_from_the_run_or_from_the_file(made, run, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra viz")
    call("timeline", run, "--only", "loss", "--quiet")
    call("plot", "timeline", run, "--out", tmp_path / "a.svg")
    call("plot", "timeline", run / "timeline.json", "--out", tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "Held-out loss" in (tmp_path / "a.svg").read_text()
