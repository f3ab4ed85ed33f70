"""Heads switched off and weights edited: the numbers, and that nothing stays changed."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.analysis.passes.interventions import changed_probabilities, edited
from mini_bert.core.ops.softmax import softmax_forward
from mini_bert.errors import InputError

CONFIG = ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=12, vocab_size=20, max_seq_length=8)
IDS = np.array([2, 7, 9, 4, 3])


@pytest.fixture
def model():
    made = MiniBERT(CONFIG, seed=3)
    made.params.flat += 0.3 * np.random.default_rng(0).standard_normal(made.params.flat.size).astype(np.float32)
    return made


def plain(model):
    return softmax_forward(model.forward(IDS[None])[0][0])[0]


def test_a_head_that_is_off_is_one_whose_output_rows_are_zero(model):
    got = changed_probabilities(model, IDS, heads=[(1, 0)])
    assert np.abs(got - plain(model)).max() > 1e-4
    d = CONFIG.hidden_size // CONFIG.num_heads
    model.params["W_O_1"][:d] = 0
    assert got == pytest.approx(plain(model), abs=1e-6)


def test_an_edited_weight_moves_the_prediction_and_is_put_back(model):
    before = model.params.flat.copy()
    got = changed_probabilities(model, IDS, edits={("W1_0", (3, 5)): 2.5, ("b2_1", (4,)): -1.0})
    assert model.params.flat.tobytes() == before.tobytes()
    model.params["W1_0"][3, 5], model.params["b2_1"][4] = 2.5, -1.0
    assert got == pytest.approx(plain(model), abs=1e-7)


def test_an_edit_is_put_back_when_the_pass_fails(model):
    before = model.params.flat.copy()

    def fails():
        with edited(model, {("W1_0", (0, 0)): 9.0}) as was:
            assert was == {("W1_0", (0, 0)): float(before[model.params.slices["W1_0"].start])}
            assert model.params["W1_0"][0, 0] == 9.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert model.params.flat.tobytes() == before.tobytes()


@pytest.mark.parametrize(("changes", "message"), [
    ({"heads": [(2, 0)]}, "no head 0 in layer 2"), ({"heads": [(0, -1)]}, "no head -1"),
    ({"edits": {("W9", (0, 0)): 1.0}}, "no parameter 'W9'"), ({"edits": {("W1_0", (0, 99)): 1.0}}, "no place"),
    ({"edits": {("W1_0", (0,)): 1.0}}, "no place")])
def test_what_the_model_does_not_have_is_refused(model, changes, message):
    with pytest.raises(InputError, match=message):
        changed_probabilities(model, IDS, **changes)
