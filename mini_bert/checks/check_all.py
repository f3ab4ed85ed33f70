"""All that finite differences prove: every operation, and every parameter of every kind of model."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from ..configs import load_preset, preset_names
from ..core.config import ModelConfig
from ..core.gradcheck import CheckResult
from ..core.modules.heads.task import TASK_HEADS
from ..core.ops import operations
from ..core.registry import SLOTS
from ..errors import InputError
from .heads import check_task_head
from .models import check_model, distinct_slots, shrink

MODELS, TASKS, PROBES = "models", "tasks", "probes"


def subjects() -> list[str]:
    """What can be asked for by name: the operations, all models together, the heads for tasks, and the probes."""
    return [*(operation.name for operation in operations()), MODELS, TASKS, PROBES]


def models_to_check() -> dict[str, ModelConfig]:
    """A small model for each combination of slots that a preset uses, and for each other word of a slot."""
    presets = {name: load_preset(name) for name in preset_names()}
    mini = presets["mini"].to_dict()
    unused = {f"{slot}: {word}": ModelConfig.from_dict({**mini, slot: word})
              for slot, words in SLOTS.items() for word in words
              if word not in {getattr(config, slot) for config in presets.values()}}
    return distinct_slots(presets | unused, sizes=presets["debug"])


def prove(names: Sequence[str] = (), seed: int = 0) -> Iterator[CheckResult]:
    """Check the named subjects, or all of them, one gradient after the other."""
    for name in names:
        if name not in subjects():
            near = get_close_matches(name, subjects(), n=1, cutoff=0.0)[0]
            raise InputError(f"There is nothing called {name!r} to check; the nearest is {near!r}, "
                             f"and all are {', '.join(subjects())}.")
    for operation in operations():
        if not names or operation.name in names:
            yield from operation.check(seed)
    if not names or MODELS in names:
        for name, config in models_to_check().items():
            yield from check_model(name, config, seed)
    if not names or TASKS in names:
        smooth = ModelConfig.from_dict({**load_preset("mini").to_dict(), "activation": "gelu"})
        for head in TASK_HEADS:
            yield from check_task_head(head, shrink(smooth, load_preset("debug")), seed)
    if not names or PROBES in names:
        from ..evaluation.probes import classifier, structural  # not above: most who ask for a proof need no probes

        yield from classifier.gradient_checks(seed)
        yield from structural.gradient_checks(seed)
