"""A line of the log: what the steps since the last line have done, and what was measured behind them."""

from collections.abc import Mapping
from typing import Any

from ...objectives.objective import CorpusObjective, Loss, Losses
from ..loop import State
from ..update import StepResult
from .process_memory import peak_resident_bytes, resident_bytes


class LogInterval:
    """What has happened since the last line of the log. The sums of its losses belong to the run's state, so that the
    first line of a resumed run is that of an uninterrupted one; tokens and seconds, which give the speed, count from
    the moment at which the run was begun or resumed."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.tokens, self.seconds = 0, 0.0

    def add(self, result: StepResult, tokens: int, seconds: float) -> None:
        self.tokens += tokens
        self.seconds += seconds
        for name, loss in result.losses.items() if result.finite else ():
            before = self.losses.get(name, Loss(0.0, 0))
            self.losses[name] = Loss(before.total + loss.total, before.count + loss.count)

    def record(self, state: State, objective: CorpusObjective[Any, Any], result: StepResult, figures: dict[str, float],
               rate: float, loading: float, scheduled: Mapping[str, Any]) -> dict[str, Any]:
        """The line behind a step with this result and learning rate. `figures` are those of an evaluation, if there was
        one; `loading` are the seconds that batches took; `scheduled` are the step's values of settings that change."""
        means = {name: loss.mean if loss.count else None for name, loss in self.losses.items()}
        made: dict[str, Any] = {
            "step": state.step,
            "loss": means.get(objective.main),
            "smoothed_loss": state.mean_loss if state.smoothing else None,
            "learning_rate": rate, **scheduled, **objective.noted(),
            "grad_norm": result.grad_norm,
            "tokens_per_second": self.tokens / self.seconds if self.seconds else None,
            "loading_share": loading / self.seconds if self.seconds else None,
            "tokens": state.tokens, "seconds": state.seconds, "total_steps": state.total_steps,
            "skipped": state.skipped,
            "rss_mb": resident_bytes() / 1e6, "peak_rss_mb": peak_resident_bytes() / 1e6}
        several = len(objective.losses) > 1
        if several:                                   # each under its own name, and what the steps minimise
            made["losses"] = means
            made["total_loss"] = sum(weight * (means.get(name) or 0.0) for name, weight in objective.losses.items())
        if result.measures is not None:
            made["layer_grad_norm"] = result.measures.grad_norm
            made["update_ratio"] = result.measures.update_ratio
        heldout = {name: figures[name] for name in objective.losses if name in figures}
        if objective.main in heldout:
            made["eval_loss"] = heldout[objective.main]
        if heldout and several:
            made["eval_losses"] = heldout
        return made | {name: figure for name, figure in figures.items() if name not in heldout}
