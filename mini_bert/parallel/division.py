"""Who computes which micro-batches, and who steps which part of the parameters.

The gradients of a step are added along a fixed binary tree over the numbers of the micro-batches. A node of level k is
a block of 2^k neighbours that begins at a multiple of 2^k; the last may be cut short. A process gets neighbours, as
even a share as can be, and of all such divisions one of large blocks, each summed by itself. With 16 micro-batches:

    2 processes      [0 ... 7]  [8 ... 15]
    3 processes      [0 ... 3][4, 5]  [6, 7][8 ... 11]  [12 ... 15]

The flat buffer is cut only where the optimiser begins a new piece of its work, so that every piece is whole.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple


class Block(NamedTuple):
    """A node of the tree: the micro-batches from `start` to before `stop`."""

    level: int
    start: int
    stop: int


def root(count: int) -> Block:
    """The node that has all `count` micro-batches below it."""
    return Block(max(count - 1, 0).bit_length(), 0, count)


def children(block: Block, count: int) -> list[Block]:
    """The two sides of a node; one, where there are no micro-batches on the right."""
    half = 1 << block.level - 1
    sides = [Block(block.level - 1, start, min(start + half, count)) for start in (block.start, block.start + half)]
    return [side for side in sides if side.start < count]


@lru_cache(maxsize=64)
def divided(count: int, processes: int) -> tuple[tuple[Block, ...], ...]:
    """The blocks of each process, for `count` micro-batches."""
    most = -(-count // processes)
    level = max(level for level in range(max(most, 1).bit_length()) if _largest(count, processes, level) <= most)
    ends = [_end(count, processes, level, number) for number in range(processes + 1)]
    return tuple(tuple(_blocks(root(count), count, ends[number], ends[number + 1])) for number in range(processes))


def _end(count: int, processes: int, level: int, number: int) -> int:
    """Where process `number` begins, with units of 2^level micro-batches."""
    units = -(-count >> level)
    return min(count, -(-number * units // processes) << level)


def _largest(count: int, processes: int, level: int) -> int:
    return max(_end(count, processes, level, number + 1) - _end(count, processes, level, number)
               for number in range(processes))


def _blocks(node: Block, count: int, start: int, stop: int) -> list[Block]:
    """The largest blocks that make up the micro-batches from `start` to before `stop`."""
    if node.stop <= start or node.start >= stop or start >= stop:
        return []
    if start <= node.start and node.stop <= stop:
        return [node]
    return [block for side in children(node, count) for block in _blocks(side, count, start, stop)]


def shards(size: int, cuts: Iterable[int], together: Iterable[slice], processes: int) -> list[slice]:
    """A buffer of `size` numbers in a part for each process, about even, cut at some of `cuts` and inside nothing that
    belongs `together`. Parts may be empty, where there are fewer pieces than processes."""
    inside = sorted((run.start, run.stop) for run in together)
    starts = [start for start, _ in inside]

    def free(cut: int) -> bool:
        place = bisect_left(starts, cut) - 1              # the last run that begins before the cut
        return place < 0 or inside[place][1] <= cut

    allowed: Sequence[int] = [0, *sorted(cut for cut in set(cuts) if 0 < cut < size and free(cut)), size]
    ends = [0]
    for number in range(1, processes):
        wanted = size * number / processes
        nearest = min(allowed, key=lambda cut: abs(cut - wanted))
        ends.append(max(ends[-1], nearest))
    return [slice(start, stop) for start, stop in zip(ends, [*ends[1:], size], strict=True)]
