"""The parameters of several models in one flat buffer, so that one optimiser moves them all.

An objective may train more than one model, such as the generator and the discriminator of replaced-token detection,
or a model and a head of the objective's own:

    params = join({"": model.params, "generator.": generator.params},
                  ties=[Tie("generator.token_embeddings", "token_embeddings")])

From then on each model's parameters are a view of the joint buffer under their old names, so the models work and are
saved as before. A backward of the generator adds its gradients through `PrefixedGradients(grads, "generator.")`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..core.arrays import Array, IntArray
from ..core.params import Gradients, Parameters, ParamSpec, Tie
from ..errors import ConfigError


class JointParameters(Parameters):
    """One buffer for all `parts`, which become views of it; `shared` are the ties between parts."""

    def __init__(self, parts: Mapping[str, Parameters], shared: Iterable[Tie] = ()):
        self.parts, self.shared = dict(parts), tuple(shared)
        super().__init__(_layout(self.parts, {tie.name: tie for tie in self.shared}),
                         next(iter(self.parts.values())).dtype)
        for prefix, part in self.parts.items():
            for name in part:
                if prefix + name in self.specs:
                    self[prefix + name][...] = part[name]
        for prefix, part in self.parts.items():
            part.move_into(self, prefix)


def join(parts: Mapping[str, Parameters], ties: Iterable[Tie] = ()) -> JointParameters:
    """Join parameters, each under its prefix. `ties` let a parameter of one model be that of another: what it held
    is dropped, and the target's numbers are used. Arrays that were taken from a part before are views no longer."""
    return JointParameters(parts, ties)


def join_all(several: Iterable[Parameters]) -> Parameters:
    """One Parameters for objectives that each have their own, joint or not; a part that they have in common is once."""
    parts: dict[str, Parameters] = {}
    shared: dict[str, Tie] = {}
    for params in several:
        joint = params if isinstance(params, JointParameters) else None
        for prefix, part in (joint.parts if joint else {"": params}).items():
            if parts.setdefault(prefix, part) is not part:
                raise ConfigError(f"Two objectives have different parameters behind the prefix {prefix!r}; give each "
                                  "a prefix of its own.")
        shared |= {tie.name: tie for tie in joint.shared} if joint else {}
    return parts[""] if list(parts) == [""] else join(parts, shared.values())


def _layout(parts: Mapping[str, Parameters], shared: Mapping[str, Tie]) -> Iterator[ParamSpec | Tie]:
    """The layouts of the parts behind their prefixes; a chain of ties becomes a tie to its end."""
    specs = {prefix + name: spec for prefix, part in parts.items() for name, spec in part.specs.items()}
    for tie in shared.values():
        if tie.name not in specs or tie.target not in specs or tie.target in shared:
            raise ConfigError(f"{tie.name} cannot be tied to {tie.target}: both must be parameters of the joined "
                              "models, and the second one its own.")
        shape = specs[tie.target].shape
        if specs[tie.name].shape != (shape[::-1] if tie.transposed else shape):
            raise ConfigError(f"{tie.name} of shape {specs[tie.name].shape} cannot be tied to {tie.target} of shape "
                              f"{shape}.")
    for prefix, part in parts.items():
        for item in part.layout:
            name = prefix + item.name
            if isinstance(item, Tie):
                end = shared.get(prefix + item.target, Tie("", prefix + item.target))
                yield replace(item, name=name, target=end.target, transposed=item.transposed != end.transposed)
            elif name in shared:
                yield replace(shared[name], symbol=item.symbol)
            else:
                yield replace(item, name=name, prefix=prefix)


class PrefixedGradients:
    """The gradients of one of several joined models: what it adds goes to the names behind its prefix."""

    def __init__(self, grads: Gradients, prefix: str):
        self.grads, self.prefix = grads, prefix

    def add(self, name: str, value: Array) -> None:
        self.grads.add(self.prefix + name, value)

    def add_rows(self, name: str, rows: IntArray, values: Array) -> None:
        self.grads.add_rows(self.prefix + name, rows, values)

    def add_product(self, name: str, x: Array, dy: Array) -> None:
        self.grads.add_product(self.prefix + name, x, dy)

    def complete(self, names: Iterable[str]) -> None:
        self.grads.complete(self.prefix + name for name in names)
