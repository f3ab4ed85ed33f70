"""Checkpoints that are whole, or not there; and runs that are refused before anything is harmed."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import mini_bert
from mini_bert import CheckpointError, ConfigError, CorpusError, MiniBERT
from mini_bert.core.storage.safetensors_file import safetensors_chunks
from mini_bert.training.loop import Listener
from mini_bert.training.runs import checkpoints as module
from mini_bert.training.runs.checkpoints import list_checkpoints, newest_checkpoint, read_state, verify_checkpoint
from mini_bert.training.runs.log import Log, read_log
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.trainer import Trainer


@pytest.fixture
def finished(model_config, settings, corpus, run):
    start_run(model_config, settings, corpus.directory, run).train()
    return run


def flip(file, place: int = -5) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["model.safetensors", "optimiser.safetensors", "state.json", "vocab.txt"])
def test_a_changed_byte_is_noticed_and_the_checkpoint_before_is_taken(finished, name):
    flip(finished / "checkpoints" / "step-12" / name)
    with pytest.raises(CheckpointError, match=name):
        verify_checkpoint(finished / "checkpoints" / "step-12")
    found, reasons = newest_checkpoint(finished / "checkpoints")
    assert found.name == "step-8"
    assert name in reasons[0]
    before = MiniBERT.load(finished / "final").params.flat.copy()
    resumed = resume_run(finished)
    resumed.train()
    assert np.array_equal(resumed.model.params.flat, before)


def test_no_whole_checkpoint_is_said(finished):
    for path in list_checkpoints(finished / "checkpoints"):
        (path / "checksums.json").unlink()
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        resume_run(finished)


def test_a_full_disk_leaves_the_last_checkpoint(model_config, settings, corpus, run, monkeypatch):
    trainer = start_run(model_config, settings, corpus.directory, run)
    real, calls = module.write_files, []

    def full(directory, contents):
        calls.append(directory.name)
        if directory.name.startswith(".step-8."):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(directory, contents)

    monkeypatch.setattr(module, "write_files", full)
    with pytest.raises(CheckpointError, match="No space left"):
        trainer.train()
    monkeypatch.undo()
    assert [path.name for path in list_checkpoints(run / "checkpoints")] == ["step-4", "step-0"]
    assert not list((run / "checkpoints").glob(".*"))
    assert resume_run(run).state.step == 4


def test_a_log_that_cannot_be_synced_is_a_sentence(tmp_path, monkeypatch):
    log = Log(tmp_path)
    log.write({"step": 1})

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mini_bert.training.runs.log.os.fsync", full)
    with pytest.raises(CheckpointError, match=r"log\.jsonl: No space left"):
        log.sync()


def test_a_crash_between_two_renames_loses_nothing(finished):
    word = "0123456789abcdef"
    (finished / ".best.mini-bert").write_text(f"{word}\n")
    (finished / "best").rename(finished / f".best.{word}.old")
    resume_run(finished)
    assert not list(finished.glob(".*"))
    MiniBERT.load(finished / "best")


def test_a_run_is_not_begun_where_something_is(finished, model_config, settings, corpus, tmp_path):
    with pytest.raises(CheckpointError, match="mini-bert resume"):
        start_run(model_config, settings, corpus.directory, finished)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="exists already"):
        start_run(model_config, settings, corpus.directory, tmp_path / "file")
    with pytest.raises(CheckpointError, match="cannot be a directory"):
        start_run(model_config, settings, corpus.directory, tmp_path / "file" / "run")


def test_what_does_not_fit_is_refused_before_anything_is_made(model_config, settings, corpus, run, monkeypatch):
    with pytest.raises(ConfigError, match=r"set model\.vocab_size=60"):
        start_run(replace(model_config, vocab_size=30), settings, corpus.directory, run)
    with pytest.raises(ConfigError, match="no group or parameter 'layer_7'"):
        start_run(model_config, replace(settings, freeze="layer_7"), corpus.directory, run)
    assert not (run / "config.yaml").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 1000))
    with pytest.raises(CheckpointError, match="free space"):
        start_run(model_config, settings, corpus.directory, run)


def test_a_changed_corpus_is_refused(model_config, settings, corpus, run, tmp_path):
    shutil.copytree(corpus.directory, tmp_path / "copy")
    start_run(model_config, settings, tmp_path / "copy", run).train()
    flip(tmp_path / "copy" / "tokens.bin", 10)
    with pytest.raises(CorpusError, match="has changed"):
        resume_run(run)
    shutil.rmtree(tmp_path / "copy")
    with pytest.raises(CorpusError, match="not a prepared corpus"):
        resume_run(run)
    assert resume_run(run, data=corpus.directory).state.step == 12      # it was moved


def test_a_damaged_config_is_one_sentence(finished):
    for content in ("model: [", "model: 3", "", "training: {}"):
        (finished / "config.yaml").write_text(content)
        with pytest.raises(CheckpointError, match=r"config\.yaml"):
            resume_run(finished)
    (finished / "config.yaml").unlink()
    with pytest.raises(CheckpointError, match="not a run"):
        resume_run(finished)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_written_is_what_the_safetensors_package_reads(tmp_path, dtype):
    rng = np.random.default_rng(0)
    tensors = {"a": rng.standard_normal((3, 4)).astype(dtype).T, "b": np.zeros((0, 2), dtype), "c": np.ones((), dtype)}
    (tmp_path / "x").write_bytes(b"".join(map(bytes, safetensors_chunks(tensors, {"format": "np"}))))
    read = load_file(tmp_path / "x")
    assert read.keys() == tensors.keys()
    assert all(np.array_equal(read[name], tensors[name]) and read[name].dtype == dtype for name in tensors)


def test_a_model_that_has_changed_since_it_was_written_is_refused(finished):
    flip(finished / "final" / "model.safetensors")
    with pytest.raises(CheckpointError, match="has changed"):
        mini_bert.load(finished / "final")
    (finished / "best" / "checksums.json").write_text("{}")
    with pytest.raises(CheckpointError, match="not a whole checkpoint"):
        mini_bert.load(finished / "best")


def test_a_run_belongs_to_one_process(model_config, settings, corpus, run):
    trainer = start_run(model_config, settings, corpus.directory, run)

    class Second(Listener):
        def began(self, trainer: Trainer) -> None:
            with pytest.raises(CheckpointError, match="Another process"):
                resume_run(run).train()

    trainer.listener = Second()
    trainer.train()
    assert trainer.state.step == 12


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_refused_resume_changes_nothing_of_a_living_run(model_config, settings, corpus, run):
    trainer = start_run(model_config, replace(settings, log_every=1), corpus.directory, run)
    seen = []

    class Second(Listener):
        def stepped(self, state, loss):
            if state.step == 7:                                # behind its last checkpoint, step 4
                before = everything(run)
                with pytest.raises(CheckpointError, match="Another process is training"):
                    resume_run(run, changes=["training.learning_rate=5"])
                assert everything(run) == before
                seen.append(state.step)

    trainer.listener = Second()
    trainer.train()
    assert seen == [7]
    assert resume_run(run).config.learning_rate == settings.learning_rate
    assert [record["step"] for record in read_log(run)] == list(range(1, 13))


def test_a_resume_that_is_refused_for_its_options_changes_nothing(finished):
    (finished / "checkpoints" / "step-12" / "state.json").unlink()              # so there is something to clean up
    before = everything(finished)
    for change, words in (("training.seed=9", r"training\.seed cannot be changed"), ("training.rate=1", "nearest"),
                          ("training.optimiser=sgd", "does not belong to this model, objective and optimiser")):
        with pytest.raises((ConfigError, CheckpointError), match=words):
            resume_run(finished, changes=[change])
        assert everything(finished) == before


def test_a_run_is_locked_from_its_first_moment_to_its_last_step(model_config, settings, corpus, run):
    trainer = start_run(model_config, settings, corpus.directory, run)
    with pytest.raises(CheckpointError, match="Another process is training"):
        resume_run(run)
    trainer.train()
    resume_run(run)


def test_a_corpus_that_becomes_shorter_is_one_sentence_and_the_checkpoint_stays(model_config, settings, corpus, run,
                                                                                tmp_path, monkeypatch):
    monkeypatch.setattr("mini_bert.text.corpora.file_array.KEPT", 0)            # as if it were a large one
    shutil.copytree(corpus.directory, tmp_path / "copy")
    trainer = start_run(model_config, settings, tmp_path / "copy", run)

    class Shortens(Listener):
        def stepped(self, state, loss):
            if state.step == 6:
                os.truncate(tmp_path / "copy" / "tokens.bin", 100)

    trainer.listener = Shortens()
    with pytest.raises(CorpusError, match=r"tokens\.bin has become shorter"):
        trainer.train()
    assert newest_checkpoint(run / "checkpoints")[0].name == "step-4"
    assert resume_run(run, data=corpus.directory).train().step == 12


def test_a_final_model_that_is_missing_is_written(finished):
    expected = (finished / "final" / "model.safetensors").read_bytes()
    shutil.rmtree(finished / "final")
    resume_run(finished).train()
    assert (finished / "final" / "model.safetensors").read_bytes() == expected


def test_a_strangers_folder_is_not_removed(model_config, settings, corpus, run):
    (run / "checkpoints" / "of somebody").mkdir(parents=True)
    (run / "checkpoints" / "of somebody" / "thesis.txt").write_text("three years of work")
    with pytest.raises(CheckpointError, match="exists already"):
        start_run(model_config, settings, corpus.directory, run)
    assert (run / "checkpoints" / "of somebody" / "thesis.txt").read_text() == "three years of work"


def test_a_file_of_somebody_else_outlives_the_checkpoint_that_it_was_put_into(model_config, settings, corpus, run):
    start_run(model_config, replace(settings, keep_checkpoints=1), corpus.directory, run).train()
    (run / "checkpoints" / "step-99").mkdir()                   # no checkpoint of ours, in the way of the newest
    for place in ("checkpoints/step-99", "checkpoints/step-12", "best", "final"):
        (run / place / "diary.txt").write_text("three years of work")
        (run / place / "more").mkdir()
        (run / place / "more" / "pages").write_text("and more")
    flip(run / "final" / "model.safetensors")
    resume_run(run, changes=["training.steps=40", "training.learning_rate=1e-2"]).train()
    for place in ("checkpoints/step-99", "checkpoints/step-12", "best", "final"):
        assert (run / place / "diary.txt").read_text() == "three years of work"
        assert (run / place / "more" / "pages").read_text() == "and more"
    assert read_state(run / "best")["step"] > 12                # it has been replaced
    for place in ("best", "final"):
        verify_checkpoint(run / place)
    assert [path.name for path in list_checkpoints(run / "checkpoints")] == ["step-99", "step-40", "step-12"]


def test_nothing_is_removed_or_replaced_through_a_link(finished, tmp_path):
    newest, *_ = list_checkpoints(finished / "checkpoints")
    (tmp_path / "archive").mkdir()
    for name, link in (("step-1", finished / "checkpoints" / "step-1"), ("mine", finished / "best")):
        shutil.rmtree(link, ignore_errors=True)
        shutil.copytree(newest, tmp_path / "archive" / name)
        link.symlink_to(tmp_path / "archive" / name)
    with pytest.raises(CheckpointError, match="best is a link"):
        resume_run(finished, changes=["training.steps=20"])
    (finished / "best").unlink()
    assert resume_run(finished, changes=["training.steps=40"]).train().step == 40
    for name in ("step-1", "mine"):
        verify_checkpoint(tmp_path / "archive" / name)


def test_a_final_model_of_an_earlier_end_is_replaced(model_config, settings, corpus, run):
    class Stops(Listener):
        def stepped(self, state, loss):
            return state.step == 10

    start_run(model_config, settings, corpus.directory, run, listener=Stops()).train()
    shutil.copytree(run / "final", run.parent / "earlier")
    resume_run(run).train()
    expected = (run / "final" / "model.safetensors").read_bytes()
    shutil.rmtree(run / "final")                       # as if the run had been killed between its last two writes
    (run.parent / "earlier").rename(run / "final")
    resume_run(run).train()
    assert (run / "final" / "model.safetensors").read_bytes() == expected


def test_damaged_checkpoints_do_not_outlive_good_ones(model_config, settings, corpus, run):
    start_run(model_config, replace(settings, keep_checkpoints=2), corpus.directory, run).train()
    flip(run / "checkpoints" / "step-12" / "model.safetensors")
    resumed = resume_run(run)
    assert [path.name for path in list_checkpoints(run / "checkpoints")] == ["step-8"]
    assert resumed.state.step == 8


def test_a_resumed_run_can_be_changed(model_config, settings, corpus, run):
    start_run(model_config, settings, corpus.directory, run).train()
    longer = resume_run(run, changes=["training.steps=20", "training.learning_rate=1e-4"])
    assert longer.train().step == 20
    assert resume_run(run).config.learning_rate == 1e-4
    with pytest.raises(ConfigError, match=r"training\.learning_rate"):
        resume_run(run, changes=["model.dropout=0"])


def test_a_changed_config_of_a_run_is_noticed_and_one_without_a_digest_is_taken(finished):
    config = finished / "config.yaml"
    written = config.read_text()
    rate = next(line for line in written.splitlines() if "learning_rate" in line)
    config.write_text(written.replace(rate, f"{rate}1"))
    with pytest.raises(CheckpointError, match=r"config\.yaml has changed since it was written.*--set"):
        resume_run(finished)
    config.write_text("\n".join(line for line in written.splitlines() if not line.startswith("digest")) + "\n")
    resume_run(finished, changes=["training.learning_rate=3e-3"]).lock.release()
    assert "digest" in config.read_text()
    assert resume_run(finished).config.learning_rate == 3e-3
