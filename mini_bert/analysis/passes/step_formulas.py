"""The kinds of steps that passes are made of, each with its formula and the formulas of its gradients.

This is the one table of formulas: a step's own formula and, put together from the steps that use a value, the
formula of that value's gradient are filled in from it. In a template {y} is the step's result, {0} and {1} are its
inputs, {W} and the like its parameters, and d{y} is the gradient that comes back to it. sum_t adds up the rows, one for
each token; a row is asked if it has a target.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_PLACE = re.compile(r"(d?)\{(\w+)\}")
_LN_WHERE = ("mu = mean({0})", "sigma = sqrt(mean(({0} - mu)^2) + eps)")
_SCATTER = ("scatter(a, i)[v] = sum(a[i = v])",)


@dataclass(frozen=True)
class Kind:
    """Templates: of the result, of the gradient of each input, of the gradient of each parameter."""

    forward: str
    inputs: tuple[str, ...]
    parameters: Mapping[str, str]
    where: tuple[str, ...] = ()               # what names in `forward` mean
    gradient_where: tuple[str, ...] = ()      # what names in the gradients mean, before the names that these use


KINDS: dict[str, Kind] = {
    "lookup": Kind("{E}[ids]", (), {"E": "scatter(d{y}, ids)"}, gradient_where=_SCATTER),
    "type lookup": Kind("{E}[types]", (), {"E": "scatter(d{y}, types)"}, gradient_where=_SCATTER),
    "positions": Kind("{E}[t]", (), {"E": "scatter(d{y}, t)"}, gradient_where=_SCATTER),
    "same": Kind("{0}", ("d{y}",), {}),
    "sum": Kind("{0} + {1}", ("d{y}", "d{y}"), {}),
    "sum of three": Kind("{0} + {1} + {2}", ("d{y}",) * 3, {}),
    "linear": Kind("{0} {W} + {b}", ("d{y} {W}^T",), {"W": "{0}^T d{y}", "b": "sum_t(d{y})"}),
    "to heads": Kind("split({0} {W} + {b})", ("join(d{y}) {W}^T",),
                     {"W": "{0}^T join(d{y})", "b": "sum_t(join(d{y}))"}),
    "from heads": Kind("join({0}) {W} + {b}", ("split(d{y} {W}^T)",),
                       {"W": "join({0})^T d{y}", "b": "sum_t(d{y})"}),
    "scores": Kind("{0} {1}^T / sqrt(d_k)", ("d{y} {1} / sqrt(d_k)", "d{y}^T {0} / sqrt(d_k)"), {}),
    "softmax": Kind("softmax({0})", ("{y} * (d{y} - sum({y} * d{y}))",), {}),
    "weighted sum": Kind("{0} {1}", ("d{y} {1}^T", "{0}^T d{y}"), {}),
    "layernorm": Kind("{gamma} * ({0} - mu) / sigma + {beta}",
                      ("(dxhat - mean(dxhat) - xhat * mean(dxhat * xhat)) / sigma",),
                      {"gamma": "sum_t(d{y} * xhat)", "beta": "sum_t(d{y})"}, _LN_WHERE,
                      ("dxhat = d{y} * {gamma}", "xhat = ({0} - mu) / sigma", *_LN_WHERE)),
    "relu": Kind("max({0}, 0)", ("d{y} * [{0} > 0]",), {}),
    "gelu": Kind("{0} * Phi({0})", ("d{y} * (Phi({0}) + {0} * phi({0}))",), {},
                 ("Phi(x) = (1 + erf(x / sqrt(2))) / 2",), ("phi(x) = exp(-x^2 / 2) / sqrt(2 pi)",)),
    "gelu tanh": Kind("{0} * (1 + t) / 2",
                      ("d{y} * ((1 + t) / 2 + {0} * (1 - t^2) * sqrt(2 / pi) * (1 + 0.134145 {0}^2) / 2)",), {},
                      ("t = tanh(sqrt(2 / pi) ({0} + 0.044715 {0}^3))",),
                      ("t = tanh(sqrt(2 / pi) ({0} + 0.044715 {0}^3))",)),
    "cross entropy": Kind("mean(log(sum(exp({0}))) - {0}[target])",
                          ("[asked] * (softmax({0}) - onehot(target)) / M",), {},
                          gradient_where=("M = number(asked)", "asked = has(target)")),
}


@dataclass(frozen=True)
class StepSpec:
    """One step of a pass: what it computes, from what, and how it is written."""

    name: str
    symbol: str
    kind: str
    inputs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()      # (role in the template, name of the parameter)
    layer: int | None = None
    component: str = ""


class Notation:
    """The symbols of a pass's values and parameters, and the templates filled in with them."""

    def __init__(self, specs: Sequence[StepSpec]):
        self.symbols = {spec.name: spec.symbol for spec in specs}
        for spec in specs:
            self.symbols |= {name: role if role in ("gamma", "beta") else parameter_symbol(name)
                             for role, name in spec.parameters}

    def fill(self, template: str, spec: StepSpec) -> str:
        """The template in the symbols of this step; a bias that it has not is left out."""
        roles = dict(spec.parameters)
        if "b" not in roles:
            template = template.replace(" + {b}", "")
        return _PLACE.sub(lambda match: match[1] + self.symbols[_named(match[2], spec, roles)], template)

    def forward(self, spec: StepSpec) -> tuple[str, ...]:
        kind = KINDS[spec.kind]
        return (f"{spec.symbol} = {self.fill(kind.forward, spec)}", *(self.fill(text, spec) for text in kind.where))


def explained(template: str, kind: Kind) -> list[str]:
    """The template of a gradient, and those that say what the names in it mean."""
    texts = [template]
    for where in kind.gradient_where:
        name = where.split("(")[0].split()[0]
        if any(re.search(rf"\b{name}\b", text.split("=")[-1]) for text in texts):
            texts.append(where)
    return texts


def reads(texts: Sequence[str], spec: StepSpec) -> tuple[list[str], list[str]]:
    """The gradients that templates take, and the forward values and parameters, by name."""
    roles = dict(spec.parameters)
    gradients: list[str] = []
    values: list[str] = []
    for d, place in _PLACE.findall(" ".join(texts)):
        (gradients if d else values).append(_named(place, spec, roles))
    return gradients, values


def _named(place: str, spec: StepSpec, roles: Mapping[str, str]) -> str:
    if place == "y":
        return spec.name
    return spec.inputs[int(place)] if place.isdigit() else roles[place]


def parameter_symbol(name: str) -> str:
    """W_Q_0 is W_Q, W1_0 is W_1, the embedding tables are E with a letter."""
    known = {"token_embeddings": "E", "position_embeddings": "E_P", "token_type_embeddings": "E_S",
             "mlm_head_W": "W_L", "mlm_head_b": "b_L", "mlm_transform_W": "W_T", "mlm_transform_b": "b_T"}
    if name in known:
        return known[name]
    stem = re.sub(r"_\d+$", "", name)
    return re.sub(r"^([Wb])(\d)$", r"\1_\2", stem)
