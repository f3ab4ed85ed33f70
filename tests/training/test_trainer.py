"""The loop: what it logs, what it skips, and that stopping it changes nothing."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from killed_runs import assert_same_log

from mini_bert import CheckpointError, MiniBERT, ModelConfig, NumericalError, WordPieceTokenizer
from mini_bert.errors import CorpusError
from mini_bert.objectives.masked import heldout_batches
from mini_bert.objectives.objective import Loss
from mini_bert.randomness import generator
from mini_bert.text.batches import MLMBatch, MLMBatches
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.masking import mask_tokens
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.training.config import TrainingConfig
from mini_bert.training.loop import Listener, State
from mini_bert.training.overfit import overfit
from mini_bert.training.runs import run as run_module
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import baselines, resume_run, start_run
from mini_bert.training.trainer import Trainer

CURVE = Path(__file__).parents[1] / "reference" / "loss_curve.json"


class StopAt(Listener):
    """Interrupts the process after a step, as Ctrl-C does."""

    def __init__(self, step: int):
        self.step = step

    def stepped(self, state: State, loss: float) -> None:
        if state.step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


class RandomBatches:
    """Batches that depend on the step alone."""

    def __init__(self, vocab_size: int, shape: tuple[int, int] = (8, 16)):
        self.vocab_size, self.shape = vocab_size, shape

    def __getitem__(self, step: int) -> MLMBatch:
        rng = generator(0, "test batch", step)
        # Zipf's law, roughly: there is something to learn
        ids = 5 + (rng.random(self.shape) ** 3 * (self.vocab_size - 5)).astype(np.int64)
        masked, targets, positions = mask_tokens(ids, self.vocab_size, 4, 0.15, rng)
        return MLMBatch(masked, targets, positions, np.ones(self.shape, bool))


def trained(model_config, settings, corpus, run, **options) -> Trainer:
    trainer = start_run(model_config, settings, corpus.directory, run, **options)
    trainer.train()
    return trainer


def test_ten_steps_give_the_committed_losses():
    reference = json.loads(CURVE.read_text())
    trainer = Trainer(MiniBERT(type(MiniBERT().config).from_dict(reference["model"]), seed=0),
                      RandomBatches(reference["model"]["vocab_size"]),
                      replace(_settings(reference), threads=2))
    steps = trainer.steps()
    losses = [next(steps) for _ in range(10)]
    steps.close()
    assert losses == pytest.approx(reference["losses"], abs=1e-5)


def _settings(reference):
    from mini_bert.training.config import TrainingConfig

    return TrainingConfig.from_dict(reference["training"])


def test_the_loss_falls_and_everything_is_logged(model_config, settings, corpus, run):
    trainer = trained(model_config, replace(settings, steps=60), corpus, run)
    records = list(read_log(run))
    assert [record["step"] for record in records] == list(range(3, 61, 3))
    keys = {"step", "loss", "smoothed_loss", "learning_rate", "grad_norm", "tokens_per_second", "seconds", "rss_mb",
            "peak_rss_mb", "tokens", "update_ratio", "layer_grad_norm", "skipped"}
    assert all(keys <= record.keys() for record in records)
    assert set(records[0]["update_ratio"]) == {"embeddings", "layer_0", "layer_1", "head"}
    evaluated = [record for record in records if "eval_loss" in record]
    assert [record["step"] for record in evaluated] == list(range(6, 61, 6))
    assert all(0 <= record["masked_accuracy"] <= 1 for record in evaluated)
    assert evaluated[-1]["eval_loss"] < evaluated[0]["eval_loss"] - 0.1
    assert trainer.state.best_loss == pytest.approx(min(record["eval_loss"] for record in evaluated), rel=1e-6)


def test_the_directory_of_a_run(model_config, settings, corpus, run):
    trainer = trained(model_config, settings, corpus, run)
    assert sorted(path.name for path in run.iterdir()) == ["best", "checkpoints", "config.yaml", "final", "log.jsonl"]
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-12", "step-8"]
    for name in ("best", "final", "checkpoints/step-12"):
        assert {"config.json", "model.safetensors", "vocab.txt"} <= {path.name for path in (run / name).iterdir()}
    assert np.array_equal(MiniBERT.load(run / "final").params.flat, trainer.model.params.flat)


@pytest.mark.parametrize("step", [1, 4, 7, 11])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_run_ends_with_the_same_bits(model_config, settings, corpus, tmp_path, step, threads):
    whole = trained(model_config, settings, corpus, tmp_path / "whole")
    stopped = trained(model_config, settings, corpus, tmp_path / "run", listener=StopAt(step))
    assert stopped.interrupted
    assert stopped.state.step == step
    resumed = resume_run(tmp_path / "run", threads=threads)
    resumed.train()
    assert np.array_equal(whole.model.params.flat, resumed.model.params.flat)
    assert np.array_equal(whole.optimiser.v, resumed.optimiser.v)
    assert_same_log(tmp_path / "whole", tmp_path / "run")


def test_a_resumed_run_logs_every_loss_of_a_sum_as_if_it_had_not_been_stopped(model_config, settings, corpus, tmp_path):
    several = replace(settings, objective="masked + 0.5 token_order", log_every=5)
    trained(model_config, several, corpus, tmp_path / "whole")
    trained(model_config, several, corpus, tmp_path / "run", listener=StopAt(3))
    resume_run(tmp_path / "run").train()
    assert_same_log(tmp_path / "whole", tmp_path / "run")


def test_a_checkpoint_without_the_sums_of_the_log_is_opened_and_a_wrong_one_refused():
    values = State(step=4, total_steps=12, unlogged={"masked": Loss(2.5, 3)}).to_json()
    assert State.from_json(json.loads(json.dumps(values))).unlogged == {"masked": Loss(2.5, 3)}
    older = {name: value for name, value in values.items() if name != "unlogged"}
    assert State.from_json(older).unlogged == {}
    for wrong in ([], {"masked": 2.5}, {"masked": {"total": 2.5}}, {"masked": {"total": "a", "count": 3}},
                  {"masked": {"total": 2.5, "count": -1}}):
        with pytest.raises(CheckpointError, match=r"unlogged losses .* not such sums"):
            State.from_json({**older, "unlogged": wrong})


def test_a_finished_run_stays_finished(model_config, settings, corpus, run):
    trainer = trained(model_config, settings, corpus, run)
    again = resume_run(run)
    again.train()
    assert again.state.step == 12
    assert np.array_equal(again.model.params.flat, trainer.model.params.flat)


def test_another_seed_is_another_run(model_config, settings, corpus, tmp_path):
    a = trained(model_config, settings, corpus, tmp_path / "a")
    b = trained(model_config, replace(settings, seed=1), corpus, tmp_path / "b")
    assert not np.array_equal(a.model.params.flat, b.model.params.flat)


class Broken(RandomBatches):
    """From some step on, one parameter is infinite while the step is computed."""

    def __init__(self, model: MiniBERT, bad: set[int]):
        super().__init__(model.config.vocab_size)
        self.model, self.bad, self.value = model, bad, float(model.params["b1_0"][0])

    def __getitem__(self, step: int) -> MLMBatch:
        self.model.params["b1_0"][0] = np.inf if step in self.bad else self.value
        return super().__getitem__(step)


def test_a_step_that_is_not_finite_is_skipped_and_counted(model_config, settings):
    model = MiniBERT(replace(model_config, dropout=0.0))
    trainer = Trainer(model, Broken(model, {3, 7}), replace(settings, freeze="b1_0"))
    trainer.train()
    assert trainer.state.skipped == 2
    assert trainer.optimiser.t == 10
    assert np.isfinite(np.delete(model.params.flat, model.params.slices["b1_0"])).all()


def test_several_in_a_row_stop_the_run_with_its_checkpoint_whole(model_config, settings, corpus, run):
    trainer = start_run(model_config, settings, corpus.directory, run)
    trainer.batches = Broken(trainer.model, set(range(5, 12)))
    with pytest.raises(NumericalError, match="lower learning rate"):
        trainer.train()
    assert resume_run(run).state.step == 4


def test_another_budget_plans_the_steps_and_the_evaluations_again():
    def planned(**changes):
        trainer = SimpleNamespace(config=TrainingConfig(evaluations=20, **changes), state=State(
            step=100, total_steps=100, seconds=50.0, evaluations=20))
        run_module._plan_again(trainer)
        return trainer.state.total_steps, trainer.state.evaluations

    assert planned(budget="100s") == (200, 10)                # at the speed so far
    assert planned(budget="10s") == (101, 19)                 # the next step ends the schedule
    assert planned(steps=400) == (400, 5)


def test_a_budget_decides_the_number_of_steps(model_config, settings, corpus, run):
    trainer = trained(model_config, replace(settings, budget="2s", checkpoint_every=1000, eval_every=0), corpus, run)
    state = trainer.state
    assert state.step == state.total_steps
    assert state.step > 20
    assert state.seconds < 4
    assert list(read_log(run))[-1]["learning_rate"] < 0.2 * trainer.config.learning_rate


def test_one_batch_is_learned_by_heart(model_config, settings, corpus):
    batch = MLMBatches(corpus, max_seq_length=16, batch_size=4)[0]
    loss, steps = overfit(MiniBERT(replace(model_config, dropout=0.0)), batch, replace(settings, steps=500))
    assert loss < 0.05
    assert steps < 500


def test_the_number_of_threads_changes_no_byte_of_a_new_run(model_config, settings, corpus, tmp_path):
    automatic = replace(settings, micro_batch_size=0)
    runs = [trained(model_config, replace(automatic, threads=threads), corpus, tmp_path / str(threads))
            for threads in (1, 2, 3)]
    assert all(np.array_equal(runs[0].model.params.flat, other.model.params.flat) for other in runs[1:])


def test_a_short_run_is_not_all_warm_up(model_config, settings, corpus):
    trainer = Trainer(MiniBERT(model_config), RandomBatches(60), replace(settings, warmup_steps=1000))
    rates = [trainer.learning_rate(step) for step in range(12)]
    assert max(rates) == settings.learning_rate
    assert rates[-1] < rates[6]


def test_a_run_whose_end_is_not_finite_is_no_success(model_config, settings, corpus, run):
    trainer = start_run(model_config, settings, corpus.directory, run)
    trainer.batches = Broken(trainer.model, {10, 11})
    with pytest.raises(NumericalError, match="lower learning rate"):
        trainer.train()
    assert not (run / "final").exists()


def test_guessing_by_frequency_is_measured_where_the_run_is(corpus):
    """At the held-out masked tokens, from the text for training alone, with one added to each count."""
    batches = heldout_batches(corpus, TrainingConfig(max_seq_length=16, eval_sequences=64))
    counts = np.ones(corpus.manifest.vocab_size)
    for ids in corpus.token_chunks("train"):
        np.add.at(counts, ids, 1)
    guessed = np.concatenate([batch.target_ids[batch.mask_positions] for batch in batches])
    found = baselines(corpus, batches)
    assert found["unigram_loss"] == pytest.approx(-np.log(counts / counts.sum())[guessed].mean())
    assert found["uniform_loss"] == pytest.approx(np.log(corpus.manifest.vocab_size))
    assert 0 < baselines(corpus, [])["unigram_loss"] < found["uniform_loss"]          # nothing is held out


def test_text_without_a_known_word_is_called_that_and_not_a_high_learning_rate(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{'x' * n} y\n\n" for n in range(2, 40)))
    prepare([str(tmp_path / "text.txt")], WordPieceTokenizer([*SPECIAL_TOKENS, "the"]), tmp_path / "corpus", workers=1)
    model = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=8, vocab_size=6, max_seq_length=8)
    trainer = start_run(model, TrainingConfig(steps=10, batch_size=4, threads=1), tmp_path / "corpus", tmp_path / "run")
    with pytest.raises(CorpusError, match="5 steps in a row had nothing to predict") as refused:
        trainer.train()
    assert "learning rate" not in str(refused.value)
