"""A budget of time in place of a number of steps: the schedule is fitted to what the machine can do in it."""

from collections.abc import Callable
from time import perf_counter

from .loop import State

CALIBRATION = 4               # steps that are timed before a run


class Budget:
    """Fits `state.total_steps` to the seconds that are left, with what the end of a run needs kept back."""

    def __init__(self, seconds: float, state: State):
        self.seconds, self.state = seconds, state
        self.reserve: dict[str, float] = {}       # seconds that the end of a run will need, by purpose

    def plan_first(self, compute: Callable[[int], object], elapsed: Callable[[], float]) -> None:
        """Time a few steps that change nothing."""
        for _ in range(2):                        # the first time warms up
            begin = perf_counter()
            for step in range(CALIBRATION):
                compute(step)
            seconds = perf_counter() - begin
        self.state.seconds = elapsed()
        self.fit(seconds / CALIBRATION * 1.15)    # the optimiser, evaluations and checkpoints

    def fit(self, seconds_per_step: float) -> None:
        """As many further steps as there is time for."""
        left = self.seconds - self.state.seconds - sum(self.reserve.values())
        self.state.total_steps = self.state.step + max(1, int(left / seconds_per_step))
