"""Commands under mpirun: the bits of one process, and what happens when one of several fails."""

import json
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest
from launched import MISSING, PROGRAM, Launched, run, until

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

FILES = ("final/model.safetensors", "best/model.safetensors", "checkpoints/step-{}/model.safetensors",
         "checkpoints/step-{}/optimiser.safetensors")
SETTINGS = ("--set", "training.micro_batch_size=4", "--set", "training.eval_every=8", "--set",
            "training.checkpoint_every=8", "--set", "training.warmup_steps=2", "--quiet")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A corpus of some thousand tokens, and a table of labelled texts."""
    folder, draw = tmp_path_factory.mktemp("mpirun"), random.Random(0)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away"]
    (folder / "text.txt").write_text("\n\n".join(" ".join(draw.choices(words, k=40)) + "." for _ in range(200)))
    (folder / "labelled.csv").write_text("text,label\n" + "".join(
        f"{' '.join(draw.choices(words, k=6))} {'good' if number % 2 else 'bad'},{number % 2}\n"
        for number in range(60)))
    alone(folder, "tokenizer", "train", "text.txt", "--vocab-size", 60, "--out", "tokenizer", "--quiet")
    alone(folder, "data", "prepare", "text.txt", "--tokenizer", "tokenizer", "--out", "corpus.mb", "--quiet")
    return folder


def alone(folder, *arguments):
    """Run `mini-bert ARGUMENTS` in one process."""
    return subprocess.run([*PROGRAM, *map(str, arguments)], cwd=folder, check=True, capture_output=True,
                          text=True).stdout


def pretrain(folder, out, steps=24, *more):
    return ["pretrain", "--config", "debug", "--data", folder / "corpus.mb", "--out", out, "--steps", steps, *SETTINGS,
            *more]


def trained(folder, steps=24, *more):
    """The directory of a run of one process without mpirun, which is made once."""
    out = folder / "-".join(["alone", str(steps), *(str(part).replace("/", "_") for part in more)])
    if not out.exists():
        alone(folder, *pretrain(folder, out, steps, *more))
    return out


def assert_same(run_directory, expected, steps=24):
    for file in FILES:
        name = file.format(steps)
        assert (run_directory / name).read_bytes() == (expected / name).read_bytes(), name


def done(run_directory, step):
    return lambda: (run_directory / "checkpoints" / f"step-{step}").is_dir()


@pytest.mark.parametrize(("n", "threads"), [(1, 1), (2, 1), (2, 2), (3, 1), (4, 2)])
def test_pretraining_gives_the_bytes_of_one_process(folder, tmp_path, n, threads):
    code, printed = run(tmp_path, n, *pretrain(folder, tmp_path / "run"), "--threads", threads)
    assert code == 0, printed
    assert_same(tmp_path / "run", trained(folder))
    lines = [[json.loads(line) for line in (path / "log.jsonl").read_text().splitlines()]
             for path in (tmp_path / "run", trained(folder))]
    by_the_clock = {"seconds", "tokens_per_second", "loading_share", "rss_mb", "peak_rss_mb"}
    assert [{key: value for key, value in line.items() if key not in by_the_clock} for line in lines[0]] \
        == [{key: value for key, value in line.items() if key not in by_the_clock} for line in lines[1]]
    assert printed.count("24 steps") == 1                 # one process speaks


@pytest.mark.parametrize("optimiser", ["lion", "muon", "lookahead(adamw, k=3)"])
def test_every_optimiser_gives_the_bytes_of_one_process(folder, tmp_path, optimiser):
    more = "--set", f"training.optimiser={optimiser}"
    code, printed = run(tmp_path, 3, *pretrain(folder, tmp_path / "run", 24, *more), "--threads", 1)
    assert code == 0, printed
    assert_same(tmp_path / "run", trained(folder, 24, *more))


@pytest.mark.parametrize("rank", [0, 2])
def test_a_killed_process_ends_all_and_fewer_continue_with_the_same_bytes(folder, tmp_path, rank):
    steps = 200
    launched = Launched(tmp_path, "-n", 3, *PROGRAM, *pretrain(folder, tmp_path / "run", steps))
    until(done(tmp_path / "run", 16))
    begin = time.monotonic()
    os.kill(launched.processes()[rank], signal.SIGKILL)
    code, _ = launched.wait()
    assert code != 0
    assert time.monotonic() - begin < 30
    code, printed = run(tmp_path, 2, "resume", tmp_path / "run", "--quiet")
    assert code == 0, printed
    assert_same(tmp_path / "run", trained(folder, steps), steps)


def test_a_signal_for_mpirun_saves_and_one_process_continues(folder, tmp_path):
    steps = 200
    launched = Launched(tmp_path, "-n", 2, *PROGRAM, *pretrain(folder, tmp_path / "run", steps))
    until(done(tmp_path / "run", 16))
    os.kill(launched.pid, signal.SIGTERM)
    launched.wait()
    stopped = max(int(path.name[5:]) for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert 16 <= stopped < steps
    alone(folder, "resume", tmp_path / "run", "--quiet")
    assert_same(tmp_path / "run", trained(folder, steps), steps)


def test_an_exception_in_one_process_ends_all_with_its_message(folder, tmp_path):
    (tmp_path / "fault.py").write_text("""
from mini_bert.parallel.processes import world
from mini_bert.training.loop import Loop

before = Loop.advance

def advance(self, *given, **options):
    if world().rank == 1 and self.state.step == 12:
        raise RuntimeError("the fan of this host has stopped")
    return before(self, *given, **options)

Loop.advance = advance
""")
    code, printed = run(tmp_path, 2, "--import", tmp_path / "fault.py", *pretrain(folder, tmp_path / "run"))
    assert code != 0
    assert "mini-bert: process 1 of 2" in printed
    assert "the fan of this host has stopped" in printed
    code, printed = run(tmp_path, 2, "resume", tmp_path / "run", "--quiet")
    assert code == 0, printed
    assert_same(tmp_path / "run", trained(folder))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_hangs_is_named(folder, tmp_path, rank):
    launched = Launched(tmp_path, "-n", 2, *PROGRAM, *pretrain(folder, tmp_path / "run", 100_000),
                        environment={"MINI_BERT_SILENCE": "5"})
    until(done(tmp_path / "run", 8))
    os.kill(launched.processes()[rank], signal.SIGSTOP)
    code, printed = launched.wait(60)
    assert code != 0
    assert f"nothing was heard of process {rank} of 2" in printed


def test_different_corpora_are_refused(folder, tmp_path):
    (folder / "other.txt").write_text("\n\n".join(f"the cat ran away {number} ." for number in range(200)))
    if not (folder / "other.mb").exists():
        alone(folder, "data", "prepare", "other.txt", "--tokenizer", "tokenizer", "--out", "other.mb", "--quiet")
    one, other = (pretrain(folder, tmp_path / "run") for _ in range(2))
    other[other.index(folder / "corpus.mb")] = folder / "other.mb"
    code, printed = Launched(tmp_path, "-n", 1, *PROGRAM, *one, ":", "-n", 1, *PROGRAM, *other).wait()
    assert code == 2, printed
    assert "process 1 of 2" in printed
    assert "another text or vocabulary" in printed
    assert not (tmp_path / "run").exists()


def test_hosts_with_other_kernels_are_told_so(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("""
import os
if os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "1":
    import numpy
    numpy.__version__ = "1.9.9"
""")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    code, printed = run(tmp_path, 3, *pretrain(folder, tmp_path / "run", 8), environment={"PYTHONPATH": path})
    assert code == 0, printed
    assert "has another NumPy than most: 1.9.9" in printed


def test_wrong_input_is_said_once_and_nothing_is_begun(folder, tmp_path):
    code, printed = run(tmp_path, 3, *pretrain(folder, tmp_path / "run", 8, "--set", "training.optimiser=adam"))
    assert code == 2
    assert printed.count("mini-bert: ") == 1
    assert not (tmp_path / "run").exists()


def test_other_commands_are_refused(tmp_path):
    code, printed = run(tmp_path, 2, "presets")
    assert code == 2
    assert "This command runs in one process" in printed


def test_a_full_disk_ends_all_and_keeps_the_last_checkpoint(folder, tmp_path):
    (tmp_path / "full.py").write_text("""
import errno
from mini_bert.errors import CheckpointError
from mini_bert.training import trainer

before = trainer.write_checkpoint

def write_checkpoint(target, *given, **options):
    if target.name == "step-16":
        raise CheckpointError(f"Cannot write {target}: No space left on device.")
    return before(target, *given, **options)

trainer.write_checkpoint = write_checkpoint
""")
    code, printed = run(tmp_path, 3, "--import", tmp_path / "full.py", *pretrain(folder, tmp_path / "run"))
    assert code == 2, printed
    assert "No space left on device" in printed
    code, printed = run(tmp_path, 3, "resume", tmp_path / "run", "--quiet")
    assert code == 0, printed
    assert_same(tmp_path / "run", trained(folder))


def test_finetuning_and_evaluation_give_what_one_process_gives(folder, tmp_path):
    model = trained(folder) / "final"
    tune = ["finetune", "--train", folder / "labelled.csv", "--model", model, "--epochs", 2, "--no-random-init",
            "--set", "micro_batch_size=4", "--quiet", "--out"]
    alone(folder, *tune, tmp_path / "alone")
    code, printed = run(tmp_path, 2, *tune, tmp_path / "together")
    assert code == 0, printed
    for file in sorted((tmp_path / "alone").iterdir()):
        assert file.read_bytes() == (tmp_path / "together" / file.name).read_bytes(), file.name
    evaluate = ["evaluate", "--model", model, "--data", folder / "text.txt", "--json"]
    expected = json.loads(alone(folder, *evaluate))
    code, printed = run(tmp_path, 2, *evaluate)
    assert code == 0, printed
    assert json.loads(printed[printed.index("{") : printed.rindex("}") + 1]) == expected


def test_the_lab_shares_out_its_runs(folder, tmp_path):
    (tmp_path / "lab.yaml").write_text("config: debug\nset: [training.micro_batch_size=8]\nsteps: 8\nseeds: [0]\n"
                                       "runs:\n  plain: []\n  lion: [training.optimiser=lion]\n")
    lab = ["lab", tmp_path / "lab.yaml", "--data", folder / "corpus.mb", "--quiet", "--out"]
    alone(folder, *lab, tmp_path / "alone")
    code, printed = run(tmp_path, 2, *lab, tmp_path / "together")
    assert code == 0, printed
    for name in ("plain-0", "lion-0"):
        one, other = (tmp_path / where / name / "final" / "model.safetensors" for where in ("alone", "together"))
        assert one.read_bytes() == other.read_bytes()
    assert np.isfinite(json.loads((tmp_path / "together" / "lab.json").read_text())["rows"][0]
                       ["figures"]["own_loss"]["mean"])
