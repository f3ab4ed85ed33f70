"""Light copies of the model over a whole run."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from killed_runs import whole_and_resumed
from safetensors.numpy import load_file

import mini_bert
from mini_bert import CheckpointError, MiniBERT
from mini_bert.analysis.dynamics.weight_evolution import track_weight_changes
from mini_bert.explorer.runs import Run
from mini_bert.training.loop import State
from mini_bert.training.runs.checkpoints import read_state, verify_checkpoint
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.runs.snapshots import Snapshots, kept_models, snapshot_steps


@pytest.fixture
def settings(settings):
    return replace(settings, snapshots=4, threads=1, eval_every=0, keep_checkpoints=1)


def names(folder) -> list[str]:
    return sorted((path.name for path in folder.iterdir()), key=lambda name: int(name.removeprefix("step-")))


def test_steps_are_evenly_spaced_in_their_logarithm():
    steps = snapshot_steps(20, 50_000)
    assert (len(steps), steps[0], steps[-1]) == (20, 1, 50_000)
    later = np.diff(np.log(steps))[8:]                        # the first ones are whole numbers in a row
    assert np.allclose(later, np.log(50_000) / 19, rtol=0.05)
    for count, total in ((20, 12), (20, 20), (20, 21), (7, 30), (2, 2)):
        steps = snapshot_steps(count, total)
        assert len(set(steps)) == len(steps) == min(count, total)
        assert (min(steps), max(steps), sorted(steps)) == (1, total, list(steps))
    assert snapshot_steps(1, 9) == (9,)
    assert snapshot_steps(0, 9) == ()


def test_a_run_keeps_the_model_of_each_step_in_float16(model_config, settings, corpus, run):
    start_run(model_config, settings, corpus.directory, run).train()
    assert names(run / "snapshots") == ["step-1", "step-2", "step-5", "step-12"]
    final = MiniBERT.load(run / "final").params.flat
    for place in (run / "snapshots").iterdir():
        verify_checkpoint(place)
        assert read_state(place)["step"] == int(place.name.removeprefix("step-"))
        assert {array.dtype for array in load_file(place / "model.safetensors").values()} == {np.dtype(np.float16)}
        mini_bert.load_tokenizer(place)
    last = mini_bert.load(run / "snapshots" / "step-12").params.flat
    assert np.array_equal(last, final.astype(np.float16).astype(np.float32))
    assert not np.array_equal(last, mini_bert.load(run / "snapshots" / "step-5").params.flat)


def test_a_resumed_run_writes_the_same_ones_with_the_weights_to_be_used(model_config, settings, corpus, tmp_path):
    settings = replace(settings, optimiser="ema(adamw, decay=0.5)")
    whole_and_resumed(model_config, settings, corpus, tmp_path)        # killed at step 7, continued from step 4
    ours, theirs = tmp_path / "whole" / "snapshots", tmp_path / "killed" / "snapshots"
    assert names(ours) == names(theirs)
    for name in names(ours):
        assert (ours / name / "model.safetensors").read_bytes() == (theirs / name / "model.safetensors").read_bytes()
    used = MiniBERT.load(tmp_path / "whole" / "final").params.flat
    assert np.array_equal(mini_bert.load(ours / "step-12").params.flat, used.astype(np.float16).astype(np.float32))


def test_a_run_that_goes_back_removes_what_it_has_not_yet_learned_and_no_file_of_somebody_else(model_config, settings,
                                                                                              corpus, run):
    trainer = start_run(model_config, settings, corpus.directory, run)
    with trainer._loop() as loop:
        for _ in range(7):                                    # killed three steps behind its checkpoint of step 4
            trainer._advance(loop)
    trainer.lock.release()
    shutil.copytree(run / "snapshots" / "step-5", run / "snapshots" / "step-7")
    (run / "snapshots" / "step-5" / "diary.txt").write_text("three years of work")
    before = (run / "snapshots" / "step-5" / "model.safetensors").read_bytes()
    trainer = resume_run(run, changes=["training.learning_rate=1e-4"])
    assert names(run / "snapshots") == ["step-1", "step-2", "step-5"]         # step-5 is not only ours
    trainer.train()
    assert names(run / "snapshots") == ["step-1", "step-2", "step-5", "step-12"]
    assert (run / "snapshots" / "step-5" / "diary.txt").read_text() == "three years of work"
    assert (run / "snapshots" / "step-5" / "model.safetensors").read_bytes() != before
    verify_checkpoint(run / "snapshots" / "step-5")


def test_with_another_length_a_snapshot_that_lies_behind_is_taken_at_once_and_only_once(tmp_path):
    snapshots = Snapshots(tmp_path, 4)                        # of 1,000 steps: 1, 10, 100 and 1,000
    state = State(step=50, total_steps=1000, snapshot_step=10)
    assert not snapshots.due(state)
    state.total_steps = 100                                   # 1, 5, 22 and 100
    assert snapshots.due(state)
    state.snapshot_step = 50
    assert not snapshots.due(state)
    state.step, state.total_steps = 100, 1000
    assert snapshots.due(state)
    state.bad_in_a_row = 1
    assert not snapshots.due(state)
    assert not Snapshots(None, 4).due(State(step=1, total_steps=4))


def test_with_a_budget_of_time_the_last_step_has_a_snapshot(model_config, settings, corpus, run):
    trainer = start_run(model_config, replace(settings, budget="0.3s", eval_every=0), corpus.directory, run)
    state = trainer.train()
    steps = [int(name.removeprefix("step-")) for name in names(run / "snapshots")]
    assert steps[0] == 1
    assert steps[-1] == state.step


def test_the_space_for_snapshots_is_forecast(model_config, settings, corpus, run, monkeypatch):
    needed = 3 * start_run(model_config, settings, corpus.directory, run.parent / "other").checkpoint_bytes()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(needed, 0, needed))
    with pytest.raises(CheckpointError, match="free space"):
        start_run(model_config, replace(settings, snapshots=1000), corpus.directory, run)
    start_run(model_config, replace(settings, snapshots=0), corpus.directory, run)


def test_numbers_beyond_float16_are_kept(model_config, tmp_path):
    model = MiniBERT(model_config)
    model.params["token_embeddings"][5, 0] = 1e5
    Snapshots(tmp_path, 1).write(model, None, State(step=3, total_steps=3))
    assert mini_bert.load(tmp_path / "snapshots" / "step-3").params["token_embeddings"][5, 0] == 1e5


def test_the_explorer_and_the_figure_of_weights_find_snapshots(model_config, settings, corpus, run):
    start_run(model_config, replace(settings, keep_checkpoints=2), corpus.directory, run).train()
    steps = [1, 2, 5, 8, 12]                                  # step 8 is of a checkpoint alone
    assert [place.name for place in kept_models(run)] == [f"step-{step}" for step in steps]
    assert kept_models(run)[-1].parent.name == "snapshots"
    assert track_weight_changes(run, ranks=False).steps == steps
    described = Run(run).describe()["checkpoints"]
    assert [found["step"] for found in described if found["name"].startswith("step-")] == steps
