"""How the gradient of the loss spreads through a model: by layer, by component, by parameter.

    gain of a layer = |gradient at its input| / |gradient at its output|

A gain of one leaves the gradient's size unchanged. Gains multiply over layers: the gradient at the first layer,
relative to that at the last, says whether the gradient vanishes or explodes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.params import Parameters
from ...errors import InputError
from ...evaluation.result import Result
from ...text.tokenizer import Tokenizer
from ..passes.backward_steps import BackwardPass, norm_of, step_through_backward_pass

VANISHING, EXPLODING = 1e-2, 1e2          # gradient at a layer, relative to that at the last layer's output
COMPONENTS = ("embeddings", "attention", "feedforward", "layernorm", "head")


@dataclass(frozen=True)
class LayerFlow:
    """Norms of the gradient at one layer."""

    layer: int
    at_output: float                      # |d loss / d hidden of this layer|
    at_input: float
    through_attention: float              # through attention, and through the residual connection
    past_attention: float
    through_feedforward: float
    past_feedforward: float
    gain: float
    relative: float                       # at_input relative to the last layer's at_output
    verdict: str                          # vanishing, exploding, steady, or none if the gradient is zero


@dataclass(frozen=True)
class GradientFlow(Result):
    """Norms of gradients; `share` is a component's share of the squared norm of the whole gradient."""

    loss: float
    values: dict[str, float]              # by activation, in the order of the backward pass
    layers: list[LayerFlow]               # from the first to the last
    parameters: dict[str, float]
    by_component: dict[str, float]
    by_layer: dict[str, dict[str, float]]         # layer -> component -> norm
    share: dict[str, float]
    total: float


def analyze_gradient_flow(model: MiniBERT, tokenizer: Tokenizer, text: str, *, mask: Sequence[int] = (),
                          targets: Mapping[int, str | int] | None = None, seed: int = 0) -> GradientFlow:
    """The gradient flow of the loss at the masked words of a text. Without masks, 15 % of the words are masked,
    chosen by the seed."""
    return gradient_flow(step_through_backward_pass(model, tokenizer, text, mask=mask, targets=targets, seed=seed))


def gradient_flow(backward: BackwardPass) -> GradientFlow:
    """The gradient flow of a backward pass."""
    model = backward.forward.model
    values = {step.of: step.norm for step in backward if not step.is_parameter}
    components = parameter_components(model)
    parameters = {name: norm_of(backward.gradients[name]) for name in backward.gradients}
    by_component = {wanted: combined_norm(parameters[name] for name, (component, _) in components.items()
                                          if component == wanted) for wanted in COMPONENTS}
    total = combined_norm(parameters.values())
    return GradientFlow(backward.loss, values, _layers(values, model.config.num_layers), parameters, by_component,
                        _by_layer(parameters, components),
                        {name: (norm / total) ** 2 if total else 0.0 for name, norm in by_component.items()}, total)


def analyze_gradient_magnitudes_by_layer(gradients: Parameters | Mapping[str, Array]) -> dict[str, dict[str, float]]:
    """The norm, mean and largest magnitude of the gradients of each layer; parameters outside layers are `other`.

    Plain named arrays have no specs: there the layer is the number at the end of a name.
    """
    if not isinstance(gradients, Mapping) or not len(gradients):
        raise InputError("gradients must be named arrays, such as MiniBERTGradients(model).gradients.")
    groups: dict[str, list[Array]] = {}
    for name in gradients:
        if isinstance(gradients, Parameters):
            layer = gradients.specs[name].layer
        else:
            layer = int(name.rpartition("_")[2]) if name.rpartition("_")[2].isdecimal() else None
        groups.setdefault("other" if layer is None else f"layer_{layer}", []).append(np.asarray(gradients[name]))
    return {group: {"norm": combined_norm(norm_of(array) for array in arrays),
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
        # the residual sum passes the same gradient to both of its inputs
        past = [values.get(f"{path}_residual_{i}", values.get(f"{total}_{i}", after))
                for path, total in (("attention", "middle"), ("ffn", "hidden"))]
        relative = before / top if top else 0.0
        found.append(LayerFlow(i, after, before, values.get(f"attention_input_{i}", 0.0), past[0],
                               values.get(f"ffn_input_{i}", 0.0),
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
    return {f"layer_{layer}": {component: combined_norm(norms) for component, norms in group.items()}
            for layer, group in sorted(groups.items())}


def combined_norm(norms: Iterable[float]) -> float:
    """The norm of concatenated arrays from the norms of each."""
    return sqrt(sum(norm * norm for norm in norms))
