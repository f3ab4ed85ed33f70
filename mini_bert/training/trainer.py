"""Training a model on running text: the loop, with evaluation, a log and checkpoints around it.

A run that is stopped, or killed, and continued from a checkpoint ends with the same parameters, bit for bit; and so
does one of several processes. The first of them writes and listens; what depends on the clock, on signals or on a
listener is agreed by all of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import Signals
from time import perf_counter
from typing import Any

from ..core.model import MiniBERT
from ..errors import CheckpointError, NumericalError
from ..files import Lock, lock_directory
from ..interrupts import held_interrupts
from ..objectives.objective import Batches, CorpusObjective
from ..parallel.processes import Processes, Spread, from_first, on_first, world
from ..text.schedule import Step
from ..text.tokenizer import Tokenizer
from ..workers import workers
from .budget import Budget
from .clipping.clipping import runs_together
from .config import TrainingConfig, make_clipping, make_objective, make_optimiser
from .loop import Listener, Listeners, Loop, State
from .runs.checkpoints import (
    OBJECTIVE,
    OPTIMISER,
    Arrays,
    read_state,
    remove_older,
    require_no_link,
    write_checkpoint,
)
from .runs.log import Log
from .runs.objective_state import packed, read_further, unpack
from .runs.optimiser_state import restore_state, whole_state
from .runs.records import LogInterval
from .runs.snapshots import Snapshots
from .schedules import learning_rate
from .update import StepResult, Update


class Trainer:
    """Trains a model on batches; with a `run` directory it logs and keeps checkpoints there.

    What is evaluated, and saved as `best` and `final`, are the weights that the optimiser gives for it: its averaged
    ones, if it averages.
    """

    def __init__(self, model: MiniBERT, batches: Batches[Any], config: TrainingConfig | None = None, *,
                 heldout: Sequence[Any] = (), run: Path | None = None, tokenizer: Tokenizer | None = None,
                 listener: Listener | Sequence[Listener] | None = None,
                 objective: CorpusObjective[Any, Any] | None = None, processes: Processes | None = None):
        self.processes = world() if processes is None else processes
        self.model, self.batches, self.heldout = model, batches, list(heldout)
        self.config = config = (TrainingConfig() if config is None else config).resolved(model.config)
        self.objective = make_objective(config, model) if objective is None else objective
        self.run, self.tokenizer, self.lock = run, tokenizer, Lock(None)
        self.listener = Listeners.of(listener)
        self.optimiser = make_optimiser(config, self.objective.params)
        self.clipping = make_clipping(config, self.objective.params)
        self.optimiser.divide(self.processes, runs_together(self.clipping, self.processes))
        self.state = State(total_steps=config.steps)
        self.budget: Budget | None = None
        self.baselines: dict[str, float] = {}             # losses to beat, if they are known
        self.interrupted: Signals | None = None
        self.saved = -1                                   # the step of the last checkpoint
        self.snapshots = Snapshots(run, config.snapshots)
        self._log = Log(run) if run is not None else None
        self._interval = LogInterval(self.state.unlogged)
        self._began = perf_counter()

    # ---------------------------------------------------------------- the loop

    def train(self) -> State:
        """Train to the end of the schedule, or until SIGINT or SIGTERM, which lets the step finish and saves."""
        state = self.state
        self._began = perf_counter() - state.seconds
        with ExitStack() as stack:
            if self.run is not None and self._writes:
                if not self.lock.held:
                    self.lock = lock_directory(self.run, CheckpointError(f"Another process is training in {self.run}."))
                stack.callback(self.lock.release)
            interrupts = stack.enter_context(held_interrupts())
            loop = stack.enter_context(self._loop())
            self._plan(loop)
            self.listener.began(self)
            noted, stopped = self._agreed(interrupts.noted, False)
            while state.step < state.total_steps and noted is None and not stopped:
                stopped = self._advance(loop)
                noted, stopped = self._agreed(interrupts.noted, stopped)
            if noted is not None:
                self.interrupted = noted
                interrupts.answered()
                self.save()
            elif self.run is not None and (self.saved != state.step or not self._is_final(self.run / "final")):
                self.save(final=True)                 # stopped by a listener, or killed just before the end
        return state

    @property
    def _writes(self) -> bool:
        """Is this the process that writes the run's files?"""
        return self.processes.rank == 0

    def _agreed(self, noted: Signals | None, stopped: bool) -> tuple[Signals | None, bool]:
        """The signal that any process has received, and whether a listener of any asks to stop."""
        found = self.processes.share((noted, stopped))
        return next((signal for signal, _ in found if signal is not None), None), any(stop for _, stop in found)

    def _is_final(self, model: Path) -> bool:
        """Is this model the one of the present step? There may be none, or that of an earlier end."""
        def found() -> bool:
            try:
                return read_state(model).get("step") == self.state.step
            except CheckpointError:
                return False

        return from_first(self.processes, found)

    def steps(self) -> Iterator[float]:
        """The loss of one step after another, without log, evaluation and checkpoints: for measuring."""
        with self._loop() as loop:
            while self.state.step < self.state.total_steps:
                result = loop.advance()[1]
                if result.finite:
                    self.objective.feedback(self._steps_done(), result.losses, result.tallies)
                yield result.total

    @contextmanager
    def _loop(self) -> Iterator[Loop[Any, Any]]:
        """The loop, with its threads."""
        with workers(self.config.threads) as team:
            update = Update(self.objective, self.optimiser, team, clipping=self.clipping)
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
        figures = self._evaluate(loop) if evaluates else {}
        state.evaluations += evaluates
        if result.finite:                             # nothing that depends on the clock: a resumed run hears the same
            self.objective.feedback(self._steps_done(), result.losses, {**result.tallies, **figures})
        if logs or evaluates:
            state.seconds = perf_counter() - self._began
            self._report(result, figures, loop)
        stop = self.listener.stepped(state, result.total)
        if self.snapshots.due(state):                 # before the checkpoint, which says that it has been taken
            state.snapshot_step = state.step
            with self.optimiser.evaluation_weights():
                on_first(self.processes, lambda: self.snapshots.write(self.model, self.tokenizer, state))
        if last or state.step % config.checkpoint_every == 0:
            self.save(final=last)
        state.seconds = perf_counter() - self._began
        if self.budget is not None and logs and not last:
            self.budget.reserve["snapshots"] = self.snapshots.seconds_ahead(state)
            self.budget.fit((state.seconds - self.snapshots.spent) / state.step)
            self._agree_on_the_end()
        return stop

    def _agree_on_the_end(self) -> None:
        """The number of steps by the clock of the first process."""
        self.state.total_steps = from_first(self.processes, lambda: self.state.total_steps)

    def _steps_done(self) -> Step:
        return Step(self.state.step, self.state.total_steps)

    def _evaluation_due(self) -> bool:
        config, step = self.config, self.state.step
        if config.evaluations:
            return step * config.evaluations >= (self.state.evaluations + 1) * self.state.total_steps
        return config.eval_every > 0 and step % config.eval_every == 0

    def _evaluate(self, loop: Loop[Any, Any]) -> dict[str, float]:
        begin = perf_counter()
        try:
            with self.optimiser.evaluation_weights():
                return self.objective.evaluate(self.heldout, Spread(self.processes, loop.update.workers))
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
            self._agree_on_the_end()

    def _gave_up(self, error: NumericalError | str) -> NumericalError:
        kept = f" The last good checkpoint is in {self.run / 'checkpoints'}." if self.run is not None else ""
        return NumericalError(
            f"{error}{kept} Try a lower learning rate (it was {self.config.learning_rate:g}), a longer warm-up (it was "
            f"{self.config.warmup_steps} steps) or stricter clipping.")

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
        state = self.state
        step = Step(state.step - 1, state.total_steps)
        record = self._interval.record(state, self.objective, result, figures, self.learning_rate(step), loop.loading,
                                       self.config.changing(step.share))
        if self._log is not None and self._writes:
            self._log.write(record)
        self.listener.logged(record)
        if record.get("eval_loss", float("inf")) < state.best_loss:
            state.best_loss, state.best_step = record["eval_loss"], state.step
            self._save_model("best")
        state.unlogged = {}
        self._interval, loop.loading = LogInterval(state.unlogged), 0.0

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
        begin, parts = perf_counter(), self.checkpoint_parts()
        on_first(self.processes, lambda: self._write(parts))
        if self.budget is not None:
            self.budget.reserve["saving"] = 2 * (perf_counter() - begin)
        if final:
            self._save_model("final")
        self.saved = self.state.step
        return True

    def _write(self, parts: tuple[dict[str, Any], Arrays]) -> None:
        """The checkpoint's files."""
        assert self.run is not None
        if self._log is not None:
            self._log.sync()
        folder = self.run / "checkpoints"
        write_checkpoint(folder / f"step-{self.state.step}", self.model, self.tokenizer, *parts)
        remove_older(folder, self.config.keep_checkpoints)

    def checkpoint_parts(self) -> tuple[dict[str, Any], Arrays]:
        """Beside the model, what a checkpoint of this moment holds: state.json, and files of named arrays. Of several
        processes all have to ask for it, and the first has it."""
        self.state.optimiser_steps = self.optimiser.t
        values, arrays = packed(self.objective, self.model)
        return self.state.to_json() | values, {OPTIMISER: whole_state(self.optimiser), OBJECTIVE: arrays}

    def checkpoint_bytes(self) -> int:
        """About what a checkpoint takes, with a share for `best` and `final`."""
        state = sum(array.nbytes for array in self.optimiser.state.values())
        return 2 * self.objective.params.flat.nbytes + sum(self.processes.share(state))

    def _save_model(self, name: str) -> None:
        """Only the model, with the weights to be used; before it the models trained along with it, each in a directory
        of its own, so that they are there if the model is."""
        if self.run is None:
            return
        with self.optimiser.evaluation_weights():
            on_first(self.processes, lambda: self._write_models(name))

    def _write_models(self, name: str) -> None:
        assert self.run is not None
        for companion, model in self.objective.companions().items():
            folder = self.run / companion
            require_no_link(folder)
            folder.mkdir(exist_ok=True)
            write_checkpoint(folder / name, model, self.tokenizer, self.state.to_json())
        write_checkpoint(self.run / name, self.model, self.tokenizer, self.state.to_json())

    def restore(self, checkpoint: Path) -> None:
        """Go on from a checkpoint, whose parameters the model has already. Only the first process reads it."""
        values = from_first(self.processes, lambda: read_state(checkpoint))
        further = from_first(self.processes, lambda: read_further(self.objective, self.model, checkpoint))
        unpack(self.objective, self.model, values, further, checkpoint)
        self.state = State.from_json(values)
        self._interval = LogInterval(self.state.unlogged)
        self.saved = self.state.step
        restore_state(self.optimiser, checkpoint / OPTIMISER, self.state.optimiser_steps)
