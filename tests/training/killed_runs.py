"""Runs that are killed and continued, and how they are compared with runs that are left alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import resume_run, start_run


def whole_and_resumed(model_config, settings, corpus, tmp_path, threads=1):
    """A run that was left alone, and one that was killed three steps after its last checkpoint and continued."""
    whole = start_run(model_config, settings, corpus.directory, tmp_path / "whole")
    whole.train()
    killed = start_run(model_config, replace(settings, threads=1), corpus.directory, tmp_path / "killed")
    with killed._loop() as loop:
        for _ in range(7):
            killed._advance(loop)                     # checkpoint_every is 4
    killed.lock.release()
    resumed = resume_run(tmp_path / "killed", threads=threads)
    assert resumed.state.step == 4
    resumed.train()
    return whole, resumed


def assert_same_log(whole, resumed):
    """The lines of two runs' logs are equal, apart from times and memory."""
    measured = {"seconds", "tokens_per_second", "loading_share", "rss_mb", "peak_rss_mb"}
    logs = [[{key: value for key, value in record.items() if key not in measured} for record in read_log(run)]
            for run in (whole, resumed)]
    assert logs[0] == logs[1]


def assert_same(whole, resumed):
    np.testing.assert_array_equal(whole.model.params.flat, resumed.model.params.flat)
    np.testing.assert_array_equal(whole.objective.params.flat, resumed.objective.params.flat)
    last = Path("checkpoints") / f"step-{whole.state.step}"
    files = sorted(path.name for path in (whole.run / last).glob("*.safetensors"))
    assert {"model.safetensors", "optimiser.safetensors"} <= set(files)
    for name in files:
        assert (whole.run / last / name).read_bytes() == (resumed.run / last / name).read_bytes()
    assert_same_log(whole.run, resumed.run)
