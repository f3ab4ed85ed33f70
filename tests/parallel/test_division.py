"""Micro-batches and parameters, divided among processes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mini_bert.parallel.division import divided, shards


@given(st.integers(0, 200), st.integers(1, 20))
def test_every_micro_batch_is_computed_once_and_in_order(count, processes):
    blocks = [block for mine in divided(count, processes) for block in mine]
    assert [number for block in blocks for number in range(block.start, block.stop)] == list(range(count))


@given(st.integers(1, 200), st.integers(1, 20))
def test_a_block_is_a_node_of_the_tree(count, processes):
    for block in (block for mine in divided(count, processes) for block in mine):
        assert block.start % (1 << block.level) == 0
        assert block.stop == min(block.start + (1 << block.level), count)


@given(st.integers(1, 200), st.integers(1, 20))
def test_no_process_has_more_than_its_share(count, processes):
    assert max(sum(block.stop - block.start for block in mine) for mine in divided(count, processes)) \
        == -(-count // processes)


def test_a_power_of_two_gives_each_process_one_block():
    assert all(len(mine) == 1 for processes in (2, 4, 8) for mine in divided(16, processes))


@given(st.integers(0, 1000), st.lists(st.integers(0, 1000)), st.lists(st.integers(0, 1000), max_size=8),
       st.integers(1, 9))
def test_shards_cover_the_buffer_and_cut_nothing_that_belongs_together(size, cuts, ends, processes):
    ends = sorted(min(end, size) for end in ends)
    runs = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
    found = shards(size, cuts, runs, processes)
    assert [number for shard in found for number in range(shard.start, shard.stop)] == list(range(size))
    for shard in found:
        assert shard.start in {0, size, *cuts}
        assert not any(run.start < shard.start < run.stop for run in runs)


def test_shards_are_about_even_where_the_cuts_allow_it():
    assert shards(100, range(0, 100, 10), [], 4) == [slice(0, 20), slice(20, 50), slice(50, 70), slice(70, 100)]
