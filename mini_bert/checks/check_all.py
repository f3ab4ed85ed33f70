"""All numerical checks: every operation, every parameter of every kind of model, every formula."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import partial

from .. import objectives  # noqa: F401  (they fill the registry)
from ..configs import load_preset, preset_names
from ..core.config import SLOTS, ModelConfig
from ..core.gradcheck import CheckResult
from ..core.ops import Activation, Operation, operations
from ..core.registry import SLOTS as REGISTRY_SLOTS
from ..core.registry import find, parse_word, plugin_file, words
from ..errors import InputError
from .formulas import check_formulas
from .heads import check_objective, check_task_head, check_task_loss
from .models import check_model, distinct_slots, shrink

PROVED = (*SLOTS, "score_term", "task_head", "task_loss", "objective")     # slots whose words can be checked by name
# the classifiers of BERT, RoBERTa and ModernBERT
HEADS_OF_MODELS = ("first_token(pooler=true)", "first_token(transform=tanh)",
                   "tokens(transform=gelu, norm=true, transform_bias=false, bias=false)")
MODELS, TASKS, OBJECTIVES, PROBES = "models", "tasks", "objectives", "probes"


def subjects() -> list[str]:
    """What can be asked for by name: the operations, all models together, the heads for tasks, and the probes."""
    return [*(operation.name for operation in operations_to_check()), MODELS, TASKS, OBJECTIVES, PROBES]


def models_to_check() -> dict[str, ModelConfig]:
    """A small model for each combination of slots that a preset uses, and for each other word of a slot."""
    presets = {name: load_preset(name) for name in preset_names()}
    mini = presets["mini"].to_dict()
    unused = {f"{slot}: {word}": ModelConfig.from_dict({**mini, slot: word})
              for slot in SLOTS for word in words(slot)
              if word not in {getattr(config, slot) for config in presets.values()}}
    unused |= {f"score_term: {word}": ModelConfig.from_dict({**mini, "score_terms": word})
               for word in words("score_term")}
    return distinct_slots(presets | unused, sizes=presets["debug"])


def operations_to_check() -> Iterator[Operation]:
    """The operations of this package, and the activations that were registered from elsewhere."""
    yield from operations()
    for word in words("activation"):
        found = find("activation", word).named
        if plugin_file("activation", word) is not None and isinstance(found, Activation):
            yield Operation(word, found.forward, found.backward, found.checks, found.formula)


def objective_checks(seed: int = 0) -> Iterator[CheckResult]:
    """Every parameter's gradient of each objective's own loss."""
    for word in words("objective"):
        yield from check_objective(word, _smooth(), seed)
    yield from check_objective("masked + 0.5 next_sentence + token_order", _smooth(), seed, "pairs")      # in one pass


def _smooth() -> ModelConfig:
    """A small encoder without kinks."""
    smooth = ModelConfig.from_dict({**load_preset("mini").to_dict(), "activation": "gelu", "pooler": "tanh"})
    return shrink(smooth, load_preset("debug"))


def _check(name: str, config: ModelConfig, seed: int) -> Iterator[CheckResult]:
    yield from check_model(name, config, seed)
    yield from check_formulas(name, config, seed)


def check_all(names: Sequence[str] = (), seed: int = 0) -> Iterator[CheckResult]:
    """Check the named subjects, or all of them: one gradient after the other, and the formulas of the models."""
    models = models_to_check()
    for name in names:
        found = [partial(check_task_head, name, _smooth(), seed)] if name in words("task_head") else []
        found += [partial(check_task_loss, name, _smooth(), seed)] if name in words("task_loss") else []
        found += [partial(check_objective, name, _smooth(), seed)] if name in words("objective") else []
        found += [partial(_check, model, config, seed) for model, config in models.items()
                  if name in (part.partition(": ")[2] or part for part in model.split(", "))]
        if not found and name not in subjects():          # a word that presets use: the first model that has it
            found = [partial(_check, model, config, seed) for model, config in models.items()
                     if name in (parse_word(word).name for _, word in config.words())][:1]
        if not found and name not in subjects():
            from ..training import optimisers  # noqa: F401  (they fill the registry, and no check needs them)

            if (slot := next((slot for slot in REGISTRY_SLOTS if name in words(slot)), None)) is not None:
                raise InputError(f"{name!r} is a word of the slot {slot}, which has no gradient of its own to check.")
            near = get_close_matches(name, subjects(), n=1, cutoff=0.0)[0]
            raise InputError(f"There is nothing called {name!r} to check; the nearest is {near!r}, "
                             f"and all are {', '.join(subjects())}.")
        for check in found:
            yield from check()
    for operation in operations_to_check():
        if not names or operation.name in names:
            yield from operation.check(seed)
    if not names or MODELS in names:
        for name, config in models.items():
            yield from _check(name, config, seed)
    if not names or TASKS in names:
        for head in (*words("task_head"), *HEADS_OF_MODELS):
            yield from check_task_head(head, _smooth(), seed)
        for loss in words("task_loss"):
            yield from check_task_loss(loss, _smooth(), seed)
    if not names or OBJECTIVES in names:
        yield from objective_checks(seed)
    if not names or PROBES in names:
        from ..evaluation.probes import classifier, structural  # not above: most who ask for a proof need no probes

        yield from classifier.gradient_checks(seed)
        yield from structural.gradient_checks(seed)
