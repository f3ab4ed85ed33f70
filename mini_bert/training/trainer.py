"""The training loop.

    batch -> loss and gradients -> norm, clipping -> AdamW -> log, evaluation, checkpoint

A step depends on the parameters, the moments, the seed and its number, and on nothing else. A run that is
stopped, or killed, and continued from a checkpoint therefore ends with the same parameters, bit for bit.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from signal import Signals
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from ..core.model import MiniBERT
from ..errors import CheckpointError, NumericalError
from ..files import locked
from ..interrupts import held_interrupts
from ..text.batches import MLMBatch
from ..text.wordpiece.tokenizer import WordPieceTokenizer
from .batch_gradients import BatchGradients, BatchLoss, Evaluation, evaluate_batches
from .checkpoints import remove_older, write_checkpoint
from .config import TrainingConfig
from .log import Log
from .optimisers.adamw import AdamW, Measures, clip_factor
from .param_groups import parts_of, rate_factors
from .process_memory import peak_resident_bytes, resident_bytes
from .schedules import learning_rate
from .workers import Workers, workers

_SMOOTHING = 0.98
_CALIBRATION = 4              # steps that are timed before a run with a budget


@dataclass
class State:
    """Where a run stands. Everything that a resumed run needs beside the parameters and the moments."""

    step: int = 0             # steps done
    total_steps: int = 0
    optimiser_steps: int = 0  # without those that were skipped
    tokens: int = 0
    seconds: float = 0.0      # of all sessions
    smoothed_loss: float = 0.0
    smoothing: float = 0.0    # weight of the smoothed loss so far
    best_loss: float = float("inf")
    best_step: int = 0
    evaluations: int = 0      # done, of config.evaluations
    skipped: int = 0
    bad_in_a_row: int = 0

    def smooth(self, loss: float) -> None:
        self.smoothed_loss = _SMOOTHING * self.smoothed_loss + (1 - _SMOOTHING) * loss
        self.smoothing = _SMOOTHING * self.smoothing + (1 - _SMOOTHING)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "best_loss": self.best_loss if isfinite(self.best_loss) else None}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "State":
        best = values.get("best_loss")
        try:
            return cls(**{**values, "best_loss": float("inf") if best is None else best})
        except TypeError:
            raise CheckpointError("The checkpoint's state has keys that this version does not know.") from None


class Batches(Protocol):
    """Anything that gives the batch of a step."""

    def __getitem__(self, step: int) -> MLMBatch: ...


class Listener:
    """Hears of a run as it goes; a display overrides what it shows."""

    def began(self, trainer: "Trainer") -> None:
        """Before the first step."""

    def stepped(self, state: State, loss: float) -> None:
        """After each step."""

    def logged(self, record: dict[str, Any]) -> None:
        """A line for the log."""

    def said(self, message: str) -> None:
        """A sentence for a person."""


class _Interval:
    """What has happened since the last line of the log."""

    def __init__(self) -> None:
        self.loss, self.masked, self.tokens, self.seconds = 0.0, 0, 0, 0.0
        self.loading = 0.0


class _StepResult(NamedTuple):
    loss: BatchLoss
    grad_norm: float
    measures: Measures | None


class Trainer:
    """Trains a model on batches; with a `run` directory it logs and keeps checkpoints there."""

    def __init__(self, model: MiniBERT, batches: Batches, config: TrainingConfig | None = None, *,
                 heldout: Sequence[MLMBatch] = (), run: Path | None = None,
                 tokenizer: WordPieceTokenizer | None = None, listener: Listener | None = None):
        self.model, self.batches, self.heldout = model, batches, list(heldout)
        self.config = config = (TrainingConfig() if config is None else config).resolved(model.config)
        self.run, self.tokenizer = run, tokenizer
        self.listener = Listener() if listener is None else listener
        self.optimiser = AdamW(model.params, config.learning_rate, beta1=config.beta1, beta2=config.beta2,
                               epsilon=config.epsilon, weight_decay=config.weight_decay, parts=parts_of(model),
                               factors=rate_factors(model, config.layer_decay, config.freeze))
        self.state = State(total_steps=config.steps)
        self._log = Log(run) if run is not None else None
        self._interval = _Interval()
        self._began = perf_counter()
        self._reserve: dict[str, float] = {}              # seconds that the end of a run will need
        self.baselines: dict[str, float] = {}             # losses to beat, if they are known
        self.interrupted: Signals | None = None
        self.saved = -1                                   # the step of the last checkpoint

    # ---------------------------------------------------------------- the loop

    def train(self) -> State:
        """Train to the end of the schedule, or until SIGINT or SIGTERM, which lets the step finish and saves."""
        state = self.state
        self._began = perf_counter() - state.seconds
        with ExitStack() as stack:
            if self.run is not None:
                busy = CheckpointError(f"Another process is training in {self.run}.")
                stack.enter_context(locked(self.run, busy))
            interrupts = stack.enter_context(held_interrupts())
            team, gradients = stack.enter_context(self._ready())
            if self.config.budget and state.step == 0:
                self._plan_first(gradients, team)
            self.listener.began(self)
            while state.step < state.total_steps and interrupts.noted is None:
                self._advance(gradients, team)
            if interrupts.noted is not None:
                self.interrupted = interrupts.noted
                interrupts.answered()
                self.save()
            elif self.run is not None and not (self.run / "final").exists():
                self.save(final=True)                 # the run had been killed just before
        return state

    def steps(self) -> Iterator[float]:
        """The loss of one step after another, without log, evaluation and checkpoints: for measuring."""
        with self._ready() as (team, gradients):
            while self.state.step < self.state.total_steps:
                yield self._step(gradients, team, measure=False).loss.mean

    @contextmanager
    def _ready(self) -> Iterator[tuple[Workers, BatchGradients]]:
        """Threads, a place for gradients, and the model in training mode."""
        config, was_training = self.config, self.model.training
        self.model.set_training(True)
        try:
            with workers(config.threads) as team:
                yield team, BatchGradients(self.model, team, config.micro_batch_size, config.gradient_checkpointing)
        finally:
            self.model.set_training(was_training)

    def _advance(self, gradients: BatchGradients, team: Workers) -> None:
        """One step, and what is due behind it."""
        state, config, begin = self.state, self.config, perf_counter()
        last = state.step + 1 == state.total_steps
        logs = last or (state.step + 1) % config.log_every == 0
        result = self._step(gradients, team, logs)
        self._interval.seconds += perf_counter() - begin
        evaluates = bool(self.heldout) and (last or self._evaluation_due())
        if logs or evaluates:
            evaluation = self._evaluate(team) if evaluates else None
            state.evaluations += evaluates
            state.seconds = perf_counter() - self._began
            self._report(result, evaluation)
        self.listener.stepped(state, result.loss.mean)
        if last or state.step % config.checkpoint_every == 0:
            self.save(final=last)
        state.seconds = perf_counter() - self._began
        if config.budget and logs and not last:
            self._fit(state.seconds / state.step)

    def _evaluation_due(self) -> bool:
        config, step = self.config, self.state.step
        if config.evaluations:
            return step * config.evaluations >= (self.state.evaluations + 1) * self.state.total_steps
        return config.eval_every > 0 and step % config.eval_every == 0

    def _step(self, gradients: BatchGradients, team: Workers, measure: bool) -> _StepResult:
        """Loss, gradients and the optimiser's step, unless something is not finite: then nothing moves."""
        state, config = self.state, self.config
        begin = perf_counter()
        batch = self.batches[state.step]
        self._interval.loading += perf_counter() - begin
        try:
            loss = gradients.compute(batch, config.seed, state.step)
            norm = self.optimiser.grad_norm(gradients.gradients, team) / max(loss.masked, 1)
        except NumericalError:
            loss, norm = BatchLoss(float("nan"), 1), float("nan")
        measures = None
        if isfinite(loss.total) and isfinite(norm) and loss.masked:
            clip = clip_factor(norm, config.max_grad_norm)
            measures = self.optimiser.step(gradients.gradients, learning_rate=self.learning_rate(),
                                           scale=clip / loss.masked, workers=team, measure=measure)
            state.bad_in_a_row = 0
            state.smooth(loss.mean)
            self._interval.loss += loss.total
            self._interval.masked += loss.masked
        else:
            state.skipped += 1
            state.bad_in_a_row += 1
        tokens = int(batch.attention_mask.sum())
        state.step += 1
        state.tokens += tokens
        self._interval.tokens += tokens
        if state.bad_in_a_row >= config.max_bad_steps:
            self._give_up()
        return _StepResult(loss, norm, measures)

    def _evaluate(self, team: Workers) -> Evaluation | None:
        begin = perf_counter()
        try:
            return evaluate_batches(self.model, self.heldout, team)
        except NumericalError:        # of parameters that have gone: the steps to come will say so
            return None
        finally:
            self._reserve["evaluation"] = perf_counter() - begin

    def _give_up(self) -> None:
        kept = f" The last good checkpoint is in {self.run / 'checkpoints'}." if self.run is not None else ""
        raise NumericalError(
            f"{self.state.bad_in_a_row} steps in a row had no finite loss or gradient, the last one step "
            f"{self.state.step}, so the run has stopped.{kept} Try a lower learning rate (it was "
            f"{self.config.learning_rate:g}), a longer warm-up (it was {self.config.warmup_steps} steps) or a lower "
            "max_grad_norm.")

    def learning_rate(self, step: int | None = None) -> float:
        """Of a step, by default the one to come. The warm-up is no more than half of a run, a tenth with a budget."""
        config, total = self.config, self.state.total_steps
        warmup = min(config.warmup_steps, total // (10 if config.budget else 2))
        return learning_rate(self.state.step if step is None else step, total, peak=config.learning_rate,
                             schedule=config.schedule, warmup=warmup, final_share=config.final_rate,
                             decay_share=config.decay_share)

    # ---------------------------------------------------------------- a budget of time

    def _plan_first(self, gradients: BatchGradients, team: Workers) -> None:
        """Time a few steps that change nothing, and fit the schedule to what the budget allows."""
        if self.heldout:
            self._evaluate(team)
        for _ in range(2):                                # the first time warms up
            begin = perf_counter()
            for step in range(_CALIBRATION):
                gradients.compute(self.batches[step], self.config.seed, step)
            seconds = perf_counter() - begin
        self.state.seconds = perf_counter() - self._began
        self._fit(seconds / _CALIBRATION * 1.15)          # the optimiser, evaluations and checkpoints

    def _fit(self, seconds_per_step: float) -> None:
        """So many steps more as there is time for, with what the end needs kept back."""
        left = (self.config.budget_seconds() or 0.0) - self.state.seconds - sum(self._reserve.values())
        self.state.total_steps = self.state.step + max(1, int(left / seconds_per_step))

    # ---------------------------------------------------------------- records

    def _report(self, result: _StepResult, evaluation: Evaluation | None) -> None:
        state, interval = self.state, self._interval
        record: dict[str, Any] = {
            "step": state.step,
            "loss": interval.loss / interval.masked if interval.masked else None,
            "smoothed_loss": state.smoothed_loss / state.smoothing if state.smoothing else None,
            "learning_rate": self.learning_rate(state.step - 1),
            "grad_norm": result.grad_norm,
            "tokens_per_second": interval.tokens / interval.seconds if interval.seconds else None,
            "loading_share": interval.loading / interval.seconds if interval.seconds else None,
            "tokens": state.tokens, "seconds": state.seconds, "total_steps": state.total_steps,
            "skipped": state.skipped,
            "rss_mb": resident_bytes() / 1e6, "peak_rss_mb": peak_resident_bytes() / 1e6}
        if result.measures is not None:
            record["layer_grad_norm"] = result.measures.grad_norm
            record["update_ratio"] = result.measures.update_ratio
        if evaluation is not None:
            record |= {"eval_loss": evaluation.loss, "masked_accuracy": evaluation.accuracy}
        if self._log is not None:
            self._log.write(record)
        self.listener.logged(record)
        if evaluation is not None and evaluation.loss < state.best_loss:
            state.best_loss, state.best_step = evaluation.loss, state.step
            if self.run is not None:
                write_checkpoint(self.run / "best", self.model, self.tokenizer, state.to_json())
        self._interval = _Interval()

    def save(self, final: bool = False) -> bool:
        """A checkpoint of this moment, if there is a run directory; older ones beyond the number to keep go.

        After a step that was not finite the parameters may be beyond help. Then nothing is saved, the last good
        checkpoint stays, and the answer is False.
        """
        if self.run is None:
            return False
        if self.state.bad_in_a_row:
            if final:
                self._give_up()
            return False
        begin = perf_counter()
        if self._log is not None:
            self._log.sync()
        self.state.optimiser_steps = self.optimiser.t
        folder = self.run / "checkpoints"
        write_checkpoint(folder / f"step-{self.state.step}", self.model, self.tokenizer, self.state.to_json(),
                         {"m": self.optimiser.m, "v": self.optimiser.v})
        remove_older(folder, self.config.keep_checkpoints)
        self._reserve["saving"] = 2 * (perf_counter() - begin)
        if final:
            write_checkpoint(self.run / "final", self.model, self.tokenizer, self.state.to_json())
        self.saved = self.state.step
        return True
