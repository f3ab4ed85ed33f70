"""The sum of a step's gradients over all processes, each of which gets its own shard of it.

A process sums the gradients of its own micro-batches, one buffer for each block of the tree (parallel/division.py).
What it has summed outside its shard goes to the processes whose shards they are, and for its own shard it finishes the
tree with the blocks' sums of all others. The order of all additions is that of one process (gradient_sum.py). On one
host the buffers are in memory that all processes have in common: each adds its shard where the others have left it.

A parameter that a block gives no gradient to is not zero there but absent, and a row that is not touched is not added:
x + 0 would turn -0 into 0. So both are sent as -0, with which every sum is what it would be without, and a list says
where they are.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array
from ..core.params import Parameters
from ..errors import NumericalError
from ..parallel.division import Block, children, divided, root
from ..parallel.processes import Message, Processes
from ..workers import Workers
from .gradient_sum import GradientSum, MicroBatchGradients

_CHUNK = 1 << 18              # numbers that a thread adds at a time: they stay in the cache


class _Report(NamedTuple):
    """What a process tells the others when it has computed its micro-batches."""

    sums: list[Mapping[str, Any]]         # of each micro-batch
    failed: str                           # why they have no gradients, if they have none
    kinds: list[dict[str, str]]           # of each block: what is absent, or touched in some rows alone


class GradientExchange:
    """`begin(n)`; then each of `numbers` leaves its gradients in `micro_batch(i)`; then `finish`.

    `shards` are the parts of the flat buffer, by process; afterwards `gradients` has the sums in that of this process.
    """

    def __init__(self, like: Parameters, processes: Processes, shards: Sequence[slice]):
        self.processes, self.shards, self._like = processes, shards, like
        self._alone = processes.size == 1
        self._sums = list[GradientSum]()
        self._common = list[list[Array] | None]()         # for each of them: the buffers of all processes
        self._add_buffer()
        self.gradients = self._sums[0].gradients
        self._blocks: tuple[tuple[Block, ...], ...] = ()
        self._count = 0
        self._received = np.empty(0, like.dtype)

    def _add_buffer(self) -> None:
        """All processes together: a buffer for the sum of one more block."""
        common = self.processes.common(self._like.flat.size, self._like.dtype)
        memory = None if common is None else common[self.processes.rank]
        self._sums.append(GradientSum(Parameters(self._like.layout, self._like.dtype, memory=memory),
                                      exact=not self._alone))
        self._common.append(common)

    @property
    def numbers(self) -> list[int]:
        """The micro-batches that this process computes."""
        return [number for block in self._blocks[self.processes.rank] for number in range(block.start, block.stop)]

    def begin(self, count: int) -> None:
        """Forget the gradients of the last step."""
        self._count, self._blocks = count, divided(count, self.processes.size)
        mine = self._blocks[self.processes.rank]
        while len(self._sums) < max(map(len, self._blocks)):
            self._add_buffer()
        for block, total in zip(mine, self._sums, strict=False):
            total.begin(block.stop - block.start)

    def micro_batch(self, number: int) -> MicroBatchGradients:
        """Where the backward of micro-batch `number` of the whole batch leaves its gradients."""
        for block, total in zip(self._blocks[self.processes.rank], self._sums, strict=False):
            if block.start <= number < block.stop:
                return total.micro_batch(number - block.start)
        raise AssertionError(f"micro-batch {number} is another process'")

    def finish(self, sums: list[Mapping[str, Any]], failed: NumericalError | None, workers: Workers,
               ) -> list[Mapping[str, Any]]:
        """What all micro-batches have returned, in their order; `sums` are those of this process.

        If one of them has failed, on whichever process, this fails everywhere.
        """
        mine = self._sums[: len(self._blocks[self.processes.rank])]
        if failed is None:
            for total in mine:
                total.finish()
        elif self._alone:
            raise failed
        if self._alone:
            return sums
        reports = self.processes.share(_Report(sums, str(failed or ""), [total.kinds for total in mine]))
        for report in reports:
            if report.failed:
                raise NumericalError(report.failed)
        self._add_up(mine, [report.kinds for report in reports], workers)
        return [one for report in reports for one in report.sums]

    # ---------------------------------------------------------------- gradients

    def _add_up(self, mine: list[GradientSum], kinds: list[list[dict[str, str]]], workers: Workers) -> None:
        """The exchange of shards, and the rest of the tree."""
        place, parts = self.shards[self.processes.rank], self._parts(mine)
        of_block = {block: of_kind for blocks, named in zip(self._blocks, kinds, strict=True)
                    for block, of_kind in zip(blocks, named, strict=True)}
        target = self.gradients.flat[place]

        def add(run: tuple[slice, dict[Block, str]]) -> None:
            here, kinds_here = run
            total, kind = self._tree(root(self._count), {block: part[here] for block, part in parts.items()},
                                     kinds_here)
            if kind:                                          # nobody has a gradient of it, or of some rows
                total += 0.0                                  # -0 becomes 0
            target[here] = total

        if self._count:
            workers.map(add, list(self._runs(of_block)))
        else:
            target.fill(0)

    def _parts(self, mine: list[GradientSum]) -> dict[Block, Array]:
        """Of every block's sum the part in the own shard, where it may be added to."""
        place, rank = self.shards[self.processes.rank], self.processes.rank
        if self._common[0] is not None:
            others = sum(len(blocks) for blocks in self._blocks) - len(mine)
            self.processes.exchanged_bytes += others * (place.stop - place.start) * self._like.dtype.itemsize
            return {block: common[other][place] for other, blocks in enumerate(self._blocks)
                    for block, common in zip(blocks, self._common, strict=False) if common is not None}
        size = place.stop - place.start
        others = sum(len(blocks) for blocks in self._blocks) - len(mine)
        if self._received.size < others * size:
            self._received = np.empty(others * size, self.gradients.dtype)
        parts: dict[Block, Array] = {block: total.gradients.flat[place]
                                     for block, total in zip(self._blocks[rank], mine, strict=True)}
        received = list[Message]()
        for other, blocks in enumerate(self._blocks):
            for block in blocks if other != rank else ():
                start = len(received) * size
                parts[block] = self._received[start : start + size]
                received.append(Message(other, parts[block]))
        self.processes.transfer([Message(other, total.gradients.flat[shard]) for other, shard in enumerate(self.shards)
                                 if other != rank for total in mine], received)
        return parts

    def _runs(self, kinds: Mapping[Block, dict[str, str]]) -> Sequence[tuple[slice, dict[Block, str]]]:
        """The shard in runs in which every block's gradients are of one kind, none larger than a chunk."""
        place, found = self.shards[self.processes.rank], list[tuple[slice, dict[Block, str]]]()
        overlapping = [(name, max(where.start, place.start), min(where.stop, place.stop))
                       for name, where in self.gradients.slices.items()
                       if where.start < place.stop and where.stop > place.start]

        def kinds_of(item: tuple[str, int, int]) -> dict[Block, str]:
            return {block: named[item[0]] for block, named in kinds.items() if item[0] in named}

        for alike, several in groupby(overlapping, kinds_of):
            run = list(several)
            for start in range(run[0][1], run[-1][2], _CHUNK):
                stop = min(start + _CHUNK, run[-1][2])
                found.append((slice(start - place.start, stop - place.start), alike))
        return found

    def _tree(self, node: Block, parts: dict[Block, Array], kinds: dict[Block, str]) -> tuple[Array, str]:
        """The sum below a node, and its kind: "" for numbers, else "absent" or "rows"; see gradient_sum.py."""
        if node in parts:
            return parts[node], kinds.get(node, "")
        sides = [self._tree(side, parts, kinds) for side in children(node, self._count)]
        left, kind = sides[0]
        for right, other in sides[1:]:
            if other == "absent":
                continue
            if kind == "absent":
                left, kind = right, other
                continue
            if kind == "rows":
                left += 0.0
            left += right
            kind = ""
        return left, kind
