"""The blocks of a model: its steps in the boxes of a block diagram, and what goes past a box.

A block is a run of steps of one component; what only hands a value on belongs to the block that reads it. The names
come from the steps themselves, so a variant of one's own has its boxes too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..analysis.passes.backward_steps import BackwardStep
from ..analysis.passes.forward_steps import Step

_AROUND = ("residual", "layernorm")       # one box: a sum and its norm
_SPELLED = {"feedforward": "feed-forward", "residual": "add", "layernorm": "norm"}


@dataclass
class Block:
    """A box of the diagram."""

    group: str                            # the part of the pass: Embeddings, Layer 0, ...
    components: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def title(self) -> str:
        words = " and ".join(_SPELLED.get(component, component) for component in dict.fromkeys(self.components))
        return words[:1].upper() + words[1:]

    @property
    def kind(self) -> str:
        return "sum" if set(self.components) <= set(_AROUND) else self.components[0]


def blocks_of(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """The boxes in the order of the pass, each with its id, its steps, and the boxes it reads past others."""
    blocks = list(_blocks(list(steps)))
    numbers = {step.name: number for number, block in enumerate(blocks) for step in block.steps}
    ids = _ids(blocks)
    found = []
    for number, block in enumerate(blocks):
        read = {numbers[name] for step in block.steps for name in step.inputs if name in numbers and name != "tokens"}
        found.append({"id": ids[number], "group": block.group, "title": block.title, "kind": block.kind,
                      "steps": [step.name for step in block.steps],
                      "past": [ids[other] for other in sorted(read) if other < number - 1]})
    return found


def _blocks(steps: Sequence[Step]) -> Iterator[Block]:
    block: Block | None = None
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        component = after.component if step.kind == "same" and after is not None and after.group == step.group \
            else step.component
        known = block is not None and block.group == step.group and \
            (component == block.components[-1] or {component, *block.components} <= set(_AROUND))
        if block is not None and not known:
            yield block
        if block is None or not known:
            block = Block(step.group)
        block.components.append(component)
        block.steps.append(step)
    if block is not None:
        yield block


def _ids(blocks: Sequence[Block]) -> list[str]:
    """One for the address of each: layer-0-attention; a second box of the same name has a number behind it."""
    found: list[str] = []
    for block in blocks:
        stem = f"{block.group} {block.title}".lower().replace(" ", "-")
        same = sum(known == stem or known.rpartition("-")[0] == stem for known in found)
        found.append(f"{stem}-{same + 1}" if same else stem)
    return found


def places_of_gradients(steps: Iterable[Step], gradients: Iterable[BackwardStep]) -> dict[str, str]:
    """By gradient, the step in whose block it is shown: its own, or the one that reads the parameter."""
    forward = list(steps)
    own = {step.name for step in forward}
    reads = {name: step.name for step in reversed(forward) for name in step.parameters}
    last = {step.group: step.name for step in forward}
    return {found.name: found.of if found.of in own else reads.get(found.of, last[found.group]) for found in gradients}
