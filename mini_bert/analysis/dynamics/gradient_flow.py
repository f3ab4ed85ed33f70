"""How the gradient of the loss spreads through a model: by layer, by component, by parameter.

    gain of a layer = |gradient at its input| / |gradient at its output|

A gain of one passes the signal on as it is. Over many layers gains multiply: what all of them together leave at the
first layer, beside what came in at the last, says whether the gradient vanishes or explodes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.params import Parameters
from ...errors import InputError
from ...evaluation.metrics import fields_of
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ..passes.backward_steps import BackwardPass, norm_of, step_through_backward_pass

VANISHING, EXPLODING = 1e-2, 1e2          # of the gradient at a layer, beside that at the last layer's output
COMPONENTS = ("embeddings", "attention", "feedforward", "layernorm", "head")


@dataclass(frozen=True)
class LayerFlow:
    """The gradient on its way through one layer."""

    layer: int
    at_output: float                      # |d loss / d hidden of this layer|
    at_input: float
    through_attention: float              # what comes back through attention, and what by-passes it
    past_attention: float
    through_feedforward: float
    past_feedforward: float
    gain: float
    relative: float                       # at_input beside the last layer's at_output
    verdict: str                          # vanishing, exploding, steady, or none: no gradient arrives at all


@dataclass(frozen=True)
class GradientFlow:
    """Norms of gradients; `share` is a component's part of the sum of squares of all parameters' gradients."""

    loss: float
    values: dict[str, float]              # by value, in the order of the backward pass
    layers: list[LayerFlow]               # the first layer first
    parameters: dict[str, float]
    by_component: dict[str, float]
    by_layer: dict[str, dict[str, float]]         # layer_0, ...: of its components
    share: dict[str, float]
    total: float

    def to_dict(self) -> dict[str, Any]:
        return fields_of(self)


def analyze_gradient_flow(model: MiniBERT, tokenizer: WordPieceTokenizer, text: str, *, mask: Sequence[int] = (),
                          targets: Mapping[int, str | int] | None = None, seed: int = 0) -> GradientFlow:
    """The flow of the loss at masked words of a text; without masks 15 % of its words are masked, by the seed."""
    return gradient_flow(step_through_backward_pass(model, tokenizer, text, mask=mask, targets=targets, seed=seed))


def gradient_flow(backward: BackwardPass) -> GradientFlow:
    """The flow of a backward pass."""
    model = backward.forward.model
    values = {step.of: step.norm for step in backward if not step.is_parameter}
    components = parameter_components(model)
    parameters = {name: norm_of(backward.gradients[name]) for name in backward.gradients}
    by_component = {component: joined(parameters[name] for name, (part, _) in components.items() if part == component)
                    for component in COMPONENTS}
    total = joined(parameters.values())
    return GradientFlow(backward.loss, values, _layers(values, model.config.num_layers), parameters, by_component,
                        _by_layer(parameters, components),
                        {name: (norm / total) ** 2 if total else 0.0 for name, norm in by_component.items()}, total)


def analyze_gradient_magnitudes_by_layer(gradients: Parameters | Mapping[str, Array]) -> dict[str, dict[str, float]]:
    """For each layer, by the number that ends a parameter's name, the norm, the mean and the largest magnitude.

    Parameters of no layer are under `other`.
    """
    if not isinstance(gradients, Mapping) or not len(gradients):
        raise InputError("Gradients are named arrays, such as MiniBERTGradients(model).gradients.")
    groups: dict[str, list[Array]] = {}
    for name in gradients:
        number = re.search(r"_(\d+)$", name)
        groups.setdefault(f"layer_{number[1]}" if number else "other", []).append(np.asarray(gradients[name]))
    return {group: {"norm": joined(norm_of(array) for array in arrays),
                    "mean": sum(float(np.abs(array).sum(dtype=np.float64)) for array in arrays)
                    / sum(array.size for array in arrays),
                    "largest": max(float(np.abs(array).max(initial=0)) for array in arrays)}
            for group, arrays in sorted(groups.items(), key=lambda item: (item[0] == "other", len(item[0]), item[0]))}


_COMPONENTS = {"norm": "layernorm", "mlm_head": "head", "pooler": "head", "task_head": "head"}


def parameter_components(model: MiniBERT) -> dict[str, tuple[str, int | None]]:
    """The component of each parameter and its layer; what is tied is its target's."""
    return {name: (_COMPONENTS.get(spec.component, spec.component), spec.layer)
            for name, spec in model.params.specs.items()}


def _layers(values: Mapping[str, float], L: int) -> list[LayerFlow]:
    top, found = values[f"hidden_{L - 1}"], []
    for i in range(L):
        after, before = values[f"hidden_{i}"], values["embeddings" if i == 0 else f"hidden_{i - 1}"]
        # the sum that joins a path and its by-pass sends the same gradient along both
        past = [values.get(f"{path}_residual_{i}", values[f"{joined}_{i}"])
                for path, joined in (("attention", "middle"), ("ffn", "hidden"))]
        relative = before / top if top else 0.0
        found.append(LayerFlow(i, after, before, values[f"attention_input_{i}"], past[0], values[f"ffn_input_{i}"],
                               past[1], before / after if after else 0.0, relative, _verdict(before, relative)))
    return found


def _verdict(norm: float, relative: float) -> str:
    if norm == 0:
        return "none"
    return "vanishing" if relative < VANISHING else "exploding" if relative > EXPLODING else "steady"


def _by_layer(parameters: Mapping[str, float],
              components: Mapping[str, tuple[str, int | None]]) -> dict[str, dict[str, float]]:
    groups: dict[int, dict[str, list[float]]] = {}
    for name, (component, layer) in components.items():
        if layer is not None:
            groups.setdefault(layer, {}).setdefault(component, []).append(parameters[name])
    return {f"layer_{layer}": {component: joined(norms) for component, norms in group.items()}
            for layer, group in sorted(groups.items())}


def joined(norms: Iterable[float]) -> float:
    """The norm of the whole from those of its parts."""
    return sqrt(sum(norm * norm for norm in norms))
