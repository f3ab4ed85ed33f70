"""A pass over several groups of sequences, each of a length of its own: the same numbers as one sequence at a time."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, load_preset, preset_names
from mini_bert.checks.models import shrink
from mini_bert.core.inputs import Group
from mini_bert.core.selection import Selection, SeveralLengthsError, one_after_another

EXTRA = {"convolved": {"block": "convolved"}, "relative values": {"attention": "relative_values(reach=2)"},
         "numbered": {"position_embeddings": "learned(padding=1)"},
         "narrow": {"embedding_size": 6, "score_terms": "sliding_window(reach=1)"}}
CONFIGS = {name: load_preset(name) for name in preset_names()} | {
    name: ModelConfig.from_dict(load_preset("debug").to_dict() | words) for name, words in EXTRA.items()}


def slots() -> dict[str, ModelConfig]:
    """Every combination of slots once, small, in float32."""
    distinct: dict[ModelConfig, str] = {}
    for name, config in CONFIGS.items():
        distinct.setdefault(shrink(config, load_preset("debug")), name)
    return {name: config for config, name in distinct.items()}


def some_groups(config: ModelConfig, rng: np.random.Generator, *, select: bool) -> list[Group]:
    longest = config.max_seq_length
    shapes = [(3, longest), (1, 1), (2, longest // 2)]
    return [Group(rng.integers(0, config.vocab_size, shape),
                  rng.integers(0, config.token_types, shape) if config.token_types else None,
                  np.concatenate([np.ones((shape[0], 1), bool), rng.random(shape)[:, 1:] < 0.5], axis=1)
                  if select else None) for shape in shapes]


@pytest.mark.parametrize("select", [False, True], ids=["all tokens", "some tokens"])
@pytest.mark.parametrize("name", slots())
def test_groups_have_the_hidden_states_of_every_sequence_alone(name, select, rng):
    config = slots()[name]
    model = MiniBERT(config)
    model.params.flat += np.float32(0.1) * rng.standard_normal(model.params.flat.size, np.float32)
    groups = some_groups(config, rng, select=select)
    for group, (hidden, cache) in zip(groups, model.encode_groups(groups), strict=True):
        one_by_one = [Group(*(None if part is None else part[b : b + 1] for part in group))
                      for b in range(len(group.input_ids))]
        alone = [model.encode(one.input_ids, token_types=one.token_types, positions=one.positions)
                 for one in one_by_one]
        rows = np.concatenate([row.reshape(-1, config.hidden_size) for row, _ in alone])
        np.testing.assert_allclose(hidden.reshape(rows.shape), rows, atol=1e-5)
        assert {"embeddings", "hidden_0", "final_hidden"} <= set(cache)
        for layer in cache:
            rows = np.concatenate([kept[layer].reshape(-1, config.hidden_size) for _, kept in alone])
            np.testing.assert_allclose(cache[layer].reshape(rows.shape), rows, atol=1e-5, err_msg=layer)


def test_a_part_that_knows_one_length_alone_is_given_the_groups_one_by_one(debug, rng, monkeypatch):
    model, seen = MiniBERT(debug), []
    attend = type(model.layer(0).attention).forward

    def strict(self, params, x, ctx):
        seen.append(x.reshape(ctx.select.B, ctx.select.T, -1).shape)
        return attend(self, params, x, ctx)

    monkeypatch.setattr(type(model.layer(0).attention), "forward", strict)
    groups = some_groups(debug, rng, select=False)
    assert [hidden.shape[:2] for hidden, _ in model.encode_groups(groups)] == [g.input_ids.shape for g in groups]
    assert len(seen) == len(groups) * debug.num_layers


def test_rows_of_several_lengths_refuse_to_be_arranged_as_one_grid():
    both = one_after_another([Selection(*shape) for shape in ((2, 3), (1, 5))])
    assert both.tokens == both.M == 11
    with pytest.raises(SeveralLengthsError):
        both.to_grid(np.zeros((11, 2)))
