"""The formulas of a pass: the templates of its steps (core/formulas.py), filled in with the symbols of its values.

The formula of a value's gradient is put together from the steps that use the value.
"""

import re
from collections.abc import Mapping, Sequence

from ...core.formulas import Formula, StepSpec
from ...core.params import Parameters

_PLACE = re.compile(r"(d?)\{(\w+)\}")


class Notation:
    """The symbols of a pass's values and parameters, and the templates filled in with them."""

    def __init__(self, specs: Sequence[StepSpec], params: Parameters):
        self.symbols = {item.name: item.symbol or item.name for item in params.layout}
        self.symbols |= {spec.name: spec.symbol for spec in specs}

    def fill(self, template: str, spec: StepSpec) -> str:
        """The template in the symbols of this step; a bias that it does not have is left out."""
        roles = dict(spec.parameters)
        if "b" not in roles:
            template = template.replace(" + {b}", "")
        return _PLACE.sub(lambda match: match[1] + self.symbols[_named(match[2], spec, roles)], template)

    def forward(self, spec: StepSpec) -> tuple[str, ...]:
        formula = spec.formula
        return (f"{spec.symbol} = {self.fill(formula.forward, spec)}",
                *(self.fill(text, spec) for text in formula.where))


def explained(template: str, formula: Formula) -> list[str]:
    """The template of a gradient, and those that say what the names in it mean."""
    texts = [template]
    for where in formula.gradient_where:
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
