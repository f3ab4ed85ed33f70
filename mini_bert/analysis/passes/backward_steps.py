"""The backward pass of the masked-word loss, step by step: each gradient with its formula and its numbers.

The loss is the mean cross-entropy at the target positions. The numbers are those that the model's own backward
showed (core/hooks.py) and, of parameters, those that it added up. A value that several steps use gets the sum of what
they send back, and its formula is put together from theirs. `verify_entry` holds any entry against a finite
difference.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, IntArray
from ...core.formulas import StepSpec
from ...core.gradients import require_finite
from ...core.hooks import recorder
from ...core.model import MiniBERT
from ...core.ops.cross_entropy import FORMULA as LOSS_FORMULA
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.params import Parameters
from ...errors import InputError
from ...text.tokenizer import Tokenizer
from .formulas import Equations
from .forward_steps import ForwardPass, axes_of, forward_pass, one_sequence
from .named_steps import NamedSteps
from .sequences import masked_sentence
from .step_formulas import Notation, explained, reads
from .verification import DoubleLoss, Verification

Rows = npt.NDArray[np.int64]
LOSS = StepSpec("loss", "Loss", "loss", LOSS_FORMULA, ("logits",), component="loss")


@dataclass(frozen=True, eq=False)
class BackwardStep:
    """The gradient of the loss by one value or parameter."""

    name: str                             # d and the name of what it is the gradient of: dQ_0, dW_Q_0
    of: str
    title: str                            # of what it is the gradient of
    is_parameter: bool
    layer: int | None
    component: str
    formula: Equations
    gradients: tuple[str, ...]            # the steps whose gradients it is made from
    values: tuple[str, ...]               # the forward values and parameters that it uses
    array: Array = field(repr=False)
    norm: float
    axes: tuple[str, ...]                 # what each axis runs over
    group: str                            # the part of the pass
    why: str                              # one sentence: how the gradient comes about
    page: str                             # its derivation, in docs/math
    rows: Rows | None = field(repr=False, default=None)          # of an embedding table: the rows that are shown
    check: DoubleLoss | None = field(repr=False, default=None)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def to_dict(self) -> dict[str, Any]:
        """All but the numbers."""
        return {"name": self.name, "of": self.of, "title": self.title, "group": self.group,
                "is_parameter": self.is_parameter, "layer": self.layer,
                "component": self.component, "formula": self.formula.to_dict(), "gradients": list(self.gradients),
                "values": list(self.values), "why": self.why, "page": self.page,
                "shape": list(self.shape), "norm": self.norm,
                "rows": None if self.rows is None else self.rows.tolist()}


class BackwardPass(NamedSteps[BackwardStep]):
    """The gradients in the order in which they come; `passed["dQ_0"]` is one by its name."""

    def __init__(self, forward: ForwardPass, targets: dict[int, int], loss: float, probabilities: dict[int, float],
                 steps: list[BackwardStep], gradients: Parameters):
        super().__init__(steps)
        self.forward, self.targets, self.loss = forward, targets, loss
        self.probabilities = probabilities                # of the target, by position
        self.gradients = gradients

    def to_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "targets": {str(k): v for k, v in self.targets.items()},
                "probabilities": {str(k): v for k, v in self.probabilities.items()},
                "steps": [step.to_dict() for step in self.steps]}


def step_through_backward_pass(model: MiniBERT, tokenizer: Tokenizer, text: str, *, mask: Sequence[int] = (),
                               targets: Mapping[int, str | int] | None = None, seed: int = 0) -> BackwardPass:
    """The backward pass of the loss at masked words of a text, which `masked_sentence` chooses."""
    sentence = masked_sentence(model, tokenizer, text, mask=mask, targets=targets, seed=seed)
    return backward_pass(forward_pass(model, sentence.ids, sentence.tokens), sentence.targets)


def backward_pass(forward: ForwardPass, targets: Mapping[int, int]) -> BackwardPass:
    """The backward pass that follows a forward pass; `targets` gives the id to find at each chosen position."""
    model, T = forward.model, len(forward.ids)
    if not model.modules.predicts_words:
        raise InputError("This model has no MLM head, so it has no loss to go back from.")
    places, wanted = _checked(targets, T, model.config.vocab_size)
    selected = np.zeros(T, bool)
    selected[places] = True
    total, cache = cross_entropy_forward(forward["logits"].array, wanted, selected)
    dlogits = cross_entropy_backward(1 / len(places), cache)
    shown: dict[str, Array] = {}
    gradients = model.params.zeros_like()
    model.backward(dlogits[None], forward.cache, gradients, hook=recorder(shown, one_sequence))
    require_finite(gradients, total)
    exps, sums, *_ = cache
    likely = exps[np.arange(len(places)), wanted[places]] / sums
    check = DoubleLoss(model, forward.ids, places, wanted[places], forward.types)
    steps = list(_steps(forward, shown, gradients, check))
    return BackwardPass(forward, {int(p): int(wanted[p]) for p in places}, total / len(places),
                        dict(zip(places.tolist(), likely.astype(np.float64).tolist(), strict=True)), steps, gradients)


def verify_entry(step: BackwardStep, index: Sequence[int]) -> Verification:
    """One entry of a gradient against a central difference of the loss, in float64.

    The value itself is moved, in the middle of the pass, and the rest of the pass runs on; of a parameter, the
    parameter is moved.
    """
    at = tuple(index)
    if len(at) != len(step.shape) or not all(0 <= i < n for i, n in zip(at, step.shape, strict=True)):
        raise InputError(f"There is no entry {list(at)} in {step.name}, whose shape is {step.shape}.")
    if step.check is None:
        raise InputError(f"{step.name} was not made by backward_pass, so there is no loss to difference.")
    place = at if step.rows is None else (int(step.rows[at[0]]), *at[1:])
    return step.check.verify(step.of, step.is_parameter, place, float(step.array[at]))


# -------------------------------------------------------------------- putting the steps together


def _checked(targets: Mapping[int, int], T: int, V: int) -> tuple[IntArray, IntArray]:
    """The chosen positions, and an id for each of all T positions."""
    if not targets:
        raise InputError("There is no target: give the id to predict for at least one position.")
    for position, target in targets.items():
        if not 0 <= position < T:
            raise InputError(f"There is no position {position}; the text's tokens are at 0 to {T - 1}.")
        if not 0 <= target < V:
            raise InputError(f"There is no piece {target}; the vocabulary's ids are 0 to {V - 1}.")
    wanted = np.zeros(T, np.int64)
    places = np.array(sorted(targets), np.int64)
    wanted[places] = [targets[int(p)] for p in places]
    return places, wanted


def _steps(forward: ForwardPass, shown: Mapping[str, Array], gradients: Parameters,
           check: DoubleLoss) -> Iterator[BackwardStep]:
    specs = [*forward.specs, LOSS]
    notation, ties = Notation(specs, gradients), gradients.ties

    def owner(parameter: str) -> str:
        return ties[parameter].target if parameter in ties else parameter

    users, owners = _users(specs, owner)
    uses = {name: len(found) for name, found in owners.items()}
    for spec in reversed(forward.specs):
        array = shown[spec.name]
        yield _step(spec.name, spec, users[spec.name], notation, array, axes_of(spec, array), None, check)
        for _, parameter in spec.parameters:
            name = owner(parameter)
            uses[name] -= 1
            if uses[name]:                        # shared or tied: other steps have still to add to it
                continue
            rows = _rows(owners[name], forward)
            array = gradients[name]
            yield _step(name, spec, owners[name], notation, array if rows is None else array[rows],
                        gradients.axes_of(name), rows, check)


Use = tuple[StepSpec, str]                # a step, and the template of what it sends back


def _users(specs: Sequence[StepSpec], owner: Callable[[str], str]) -> tuple[dict[str, list[Use]], dict[str, list[Use]]]:
    """Who uses each value, and each parameter under its own name."""
    values: dict[str, list[Use]] = defaultdict(list)
    parameters: dict[str, list[Use]] = defaultdict(list)
    for spec in specs:
        for name, template in zip(spec.inputs, spec.formula.inputs, strict=True):
            values[name].append((spec, template))
        for role, name in spec.parameters:
            sent = spec.formula.parameters[role]
            parameters[owner(name)].append((spec, sent if owner(name) == name else f"({sent})^T"))   # tied: transposed
    return values, parameters


def _rows(users: Sequence[Use], forward: ForwardPass) -> Rows | None:
    """The rows of an embedding table that the text can have moved; None where that is all of a parameter."""
    read = {spec.formula.rows for spec, _ in users}
    return np.unique(forward.rows[read.pop()]).astype(np.int64) if len(read) == 1 and all(read) else None


def _step(of: str, spec: StepSpec, users: Sequence[Use], notation: Notation, array: Array, axes: tuple[str, ...],
          rows: Rows | None, check: DoubleLoss) -> BackwardStep:
    is_parameter = of != spec.name
    texts = [(user, explained(template, user.formula)) for user, template in users]
    sent = [notation.fill(template, user) for user, template in users]
    if len(sent) > 1 and len(set(sent)) == 1:     # a parameter that layers share
        sent = [f"sum_layers({sent[0]})"]
    where = [notation.fill(text, user) for user, (_, *meanings) in texts for text in meanings]
    used = [reads(found, user) for user, found in texts]
    equations = (f"d{notation.symbols[of]} = {' + '.join(sent)}", *dict.fromkeys(where))
    return BackwardStep(f"d{of}", of, of if is_parameter else spec.title, is_parameter, spec.layer, spec.component,
                        Equations(equations),
                        tuple(dict.fromkeys(f"d{name}" for names, _ in used for name in names)),
                        tuple(dict.fromkeys(name for _, names in used for name in names)),
                        array, norm_of(array), axes, spec.group, *_reason(of, spec, users), rows, check)


def _reason(of: str, spec: StepSpec, users: Sequence[Use]) -> tuple[str, str]:
    """A sentence on a gradient, and the page that derives it: from the operation that sends it back."""
    user = users[0][0]
    if of != spec.name:
        return "How the loss changes with each of these parameters: training moves them the other way.", \
            user.formula.page
    if len(users) > 1:
        titles = " and ".join(dict.fromkeys(f"“{user.title}”" for user, _ in users))
        return f"This value is used more than once, so what comes back is added up: from {titles}.", user.formula.page
    return user.formula.back, user.formula.page


def norm_of(array: npt.NDArray[Any]) -> float:
    """The Euclidean norm; in float64 only where float32 might overflow or lose small terms."""
    flat = np.ravel(array)
    squared = float(flat @ flat)
    return sqrt(squared) if 1e-20 < squared < 1e30 else float(np.linalg.norm(flat.astype(np.float64)))
