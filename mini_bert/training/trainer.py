"""Training a model on running text: the loop, with evaluation, a log and checkpoints around it.

A run that is stopped, or killed, and continued from a checkpoint ends with the same parameters, bit for bit.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import Signals
from time import perf_counter
from typing import Any

from ..core.model import MiniBERT
from ..errors import CheckpointError, NumericalError
from ..files import locked
from ..interrupts import held_interrupts
from ..objectives.objective import Batches, CorpusObjective
from ..text.wordpiece.tokenizer import WordPieceTokenizer
from .budget import Budget
from .config import TrainingConfig, make_objective, make_optimiser
from .loop import Listener, Listeners, Loop, State
from .runs.checkpoints import remove_older, write_checkpoint
from .runs.log import Log
from .runs.process_memory import peak_resident_bytes, resident_bytes
from .schedules import learning_rate
from .update import StepResult, Update
from .workers import workers


class _Interval:
    """What has happened since the last line of the log."""

    def __init__(self) -> None:
        self.losses: dict[str, list[float]] = {}      # by name: the summed loss, and its count
        self.tokens, self.seconds = 0, 0.0

    def add(self, result: StepResult, tokens: int, seconds: float) -> None:
        self.tokens += tokens
        self.seconds += seconds
        for name, loss in result.losses.items() if result.finite else ():
            sums = self.losses.setdefault(name, [0.0, 0.0])
            sums[0] += loss.total
            sums[1] += loss.count

    def means(self) -> dict[str, float | None]:
        return {name: total / count if count else None for name, (total, count) in self.losses.items()}


class Trainer:
    """Trains a model on batches; with a `run` directory it logs and keeps checkpoints there."""

    def __init__(self, model: MiniBERT, batches: Batches[Any], config: TrainingConfig | None = None, *,
                 heldout: Sequence[Any] = (), run: Path | None = None, tokenizer: WordPieceTokenizer | None = None,
                 listener: Listener | Sequence[Listener] | None = None,
                 objective: CorpusObjective[Any, Any] | None = None):
        self.model, self.batches, self.heldout = model, batches, list(heldout)
        self.config = config = (TrainingConfig() if config is None else config).resolved(model.config)
        self.objective = make_objective(config, model) if objective is None else objective
        self.run, self.tokenizer = run, tokenizer
        listeners = [] if listener is None else [listener] if isinstance(listener, Listener) else listener
        self.listener = Listeners(listeners)
        self.optimiser = make_optimiser(config, self.objective.params)
        self.state = State(total_steps=config.steps)
        self.budget: Budget | None = None
        self.baselines: dict[str, float] = {}             # losses to beat, if they are known
        self.interrupted: Signals | None = None
        self.saved = -1                                   # the step of the last checkpoint
        self._log = Log(run) if run is not None else None
        self._interval = _Interval()
        self._began = perf_counter()

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
            loop = stack.enter_context(self._loop())
            self._plan(loop)
            self.listener.began(self)
            stopped = False
            while state.step < state.total_steps and interrupts.noted is None and not stopped:
                stopped = self._advance(loop)
            if interrupts.noted is not None:
                self.interrupted = interrupts.noted
                interrupts.answered()
                self.save()
            elif self.run is not None and (self.saved != state.step or not (self.run / "final").exists()):
                self.save(final=True)                 # stopped by a listener, or killed just before the end
        return state

    def steps(self) -> Iterator[float]:
        """The loss of one step after another, without log, evaluation and checkpoints: for measuring."""
        with self._loop() as loop:
            while self.state.step < self.state.total_steps:
                yield loop.advance()[1].loss.mean

    @contextmanager
    def _loop(self) -> Iterator[Loop[Any, Any]]:
        """The loop, with its threads."""
        with workers(self.config.threads) as team:
            update = Update(self.objective, self.optimiser, team, max_grad_norm=self.config.max_grad_norm)
            yield Loop(update, self.batches, self.learning_rate, self.state, seed=self.config.seed,
                       max_bad_steps=self.config.max_bad_steps)

    def _advance(self, loop: Loop[Any, Any]) -> bool:
        """One step, and what is due behind it. True if a listener asks to stop."""
        state, config, begin = self.state, self.config, perf_counter()
        last = state.step + 1 == state.total_steps
        logs = last or (state.step + 1) % config.log_every == 0
        try:
            batch, result = loop.advance(measure=logs)
        except NumericalError as error:
            raise self._gave_up(error) from None
        tokens = self.objective.tokens(batch)
        state.tokens += tokens
        self._interval.add(result, tokens, perf_counter() - begin)
        evaluates = bool(self.heldout) and (last or self._evaluation_due())
        if logs or evaluates:
            figures = self._evaluate(loop) if evaluates else {}
            state.evaluations += evaluates
            state.seconds = perf_counter() - self._began
            self._report(result, figures, loop)
        stop = self.listener.stepped(state, result.loss.mean)
        if last or state.step % config.checkpoint_every == 0:
            self.save(final=last)
        state.seconds = perf_counter() - self._began
        if self.budget is not None and logs and not last:
            self.budget.fit(state.seconds / state.step)
        return stop

    def _evaluation_due(self) -> bool:
        config, step = self.config, self.state.step
        if config.evaluations:
            return step * config.evaluations >= (self.state.evaluations + 1) * self.state.total_steps
        return config.eval_every > 0 and step % config.eval_every == 0

    def _evaluate(self, loop: Loop[Any, Any]) -> dict[str, float]:
        begin = perf_counter()
        try:
            return self.objective.evaluate(self.heldout, loop.update.workers)
        except NumericalError:        # of parameters that have gone: the steps to come will say so
            return {}
        finally:
            if self.budget is not None:
                self.budget.reserve["evaluation"] = perf_counter() - begin

    def _plan(self, loop: Loop[Any, Any]) -> None:
        """With a budget of time: find out how many steps it allows."""
        seconds = self.config.budget_seconds()
        if seconds is None:
            return
        self.budget = Budget(seconds, self.state)
        if self.state.step == 0:
            if self.heldout:
                self._evaluate(loop)
            compute = loop.update.batch_gradients.compute
            self.budget.plan_first(lambda step: compute(self.batches[step], self.config.seed, step),
                                   lambda: perf_counter() - self._began)

    def _gave_up(self, error: NumericalError | str) -> NumericalError:
        kept = f" The last good checkpoint is in {self.run / 'checkpoints'}." if self.run is not None else ""
        return NumericalError(
            f"{error}{kept} Try a lower learning rate (it was {self.config.learning_rate:g}), a longer warm-up (it was "
            f"{self.config.warmup_steps} steps) or a lower max_grad_norm.")

    def learning_rate(self, step: int | None = None) -> float:
        """Of a step, by default the one to come. The warm-up is no more than half of a run, a tenth with a budget."""
        config, total = self.config, self.state.total_steps
        warmup = min(config.warmup_steps, total // (10 if config.budget else 2))
        return learning_rate(self.state.step if step is None else step, total, peak=config.learning_rate,
                             schedule=config.schedule, warmup=warmup, final_share=config.final_rate,
                             decay_share=config.decay_share)

    # ---------------------------------------------------------------- records

    def _report(self, result: StepResult, figures: dict[str, float], loop: Loop[Any, Any]) -> None:
        """A line of the log, and the best checkpoint if this is the lowest held-out loss so far."""
        state, interval = self.state, self._interval
        means = interval.means()
        record: dict[str, Any] = {
            "step": state.step,
            "loss": next(iter(means.values()), None),
            "smoothed_loss": state.mean_loss if state.smoothing else None,
            "learning_rate": self.learning_rate(state.step - 1),
            "grad_norm": result.grad_norm,
            "tokens_per_second": interval.tokens / interval.seconds if interval.seconds else None,
            "loading_share": loop.loading / interval.seconds if interval.seconds else None,
            "tokens": state.tokens, "seconds": state.seconds, "total_steps": state.total_steps,
            "skipped": state.skipped,
            "rss_mb": resident_bytes() / 1e6, "peak_rss_mb": peak_resident_bytes() / 1e6}
        if len(means) > 1:
            record["losses"] = means
        if result.measures is not None:
            record["layer_grad_norm"] = result.measures.grad_norm
            record["update_ratio"] = result.measures.update_ratio
        record |= figures
        if self._log is not None:
            self._log.write(record)
        self.objective.feedback(record)
        self.listener.logged(record)
        if figures.get("eval_loss", float("inf")) < state.best_loss:
            state.best_loss, state.best_step = figures["eval_loss"], state.step
            if self.run is not None:
                write_checkpoint(self.run / "best", self.model, self.tokenizer, state.to_json())
        self._interval, loop.loading = _Interval(), 0.0

    def save(self, final: bool = False) -> bool:
        """A checkpoint of this moment, if there is a run directory; older ones beyond the number to keep go.

        After a step that was not finite the parameters may be beyond help. Then nothing is saved, the last good
        checkpoint stays, and the answer is False.
        """
        if self.run is None:
            return False
        if self.state.bad_in_a_row:
            if final:
                raise self._gave_up("The last step had no finite loss or gradient, so the run has stopped.")
            return False
        begin = perf_counter()
        if self._log is not None:
            self._log.sync()
        self.state.optimiser_steps = self.optimiser.t
        folder = self.run / "checkpoints"
        write_checkpoint(folder / f"step-{self.state.step}", self.model, self.tokenizer, self.state.to_json(),
                         self.optimiser.state)
        remove_older(folder, self.config.keep_checkpoints)
        if self.budget is not None:
            self.budget.reserve["saving"] = 2 * (perf_counter() - begin)
        if final:
            write_checkpoint(self.run / "final", self.model, self.tokenizer, self.state.to_json())
        self.saved = self.state.step
        return True
