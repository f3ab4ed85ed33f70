"""The forward pass step by step: the model's own numbers, formulas that are true of them, and sums that add up."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hand_built_models import VARIANTS, build, small, tokenizer

from mini_bert import InputError
from mini_bert.analysis.passes.forward_steps import (
    explain_cell,
    forward_pass,
    hooked_values,
    step_through_forward_pass,
)

IDS = np.array([2, 9, 11, 9, 30, 4, 3])


@pytest.fixture(params=VARIANTS, ids=list(VARIANTS))
def model(request):
    return build(VARIANTS[request.param])


def test_the_steps_are_what_core_shows_in_its_order(model):
    shown, _ = hooked_values(model, IDS[None])
    assert [spec.name for spec in model.modules.steps()] == list(shown)
    assert forward_pass(model, IDS).names == ["tokens", *shown]


def test_the_numbers_are_the_models_bit_for_bit(model):
    passed = forward_pass(model, IDS)
    run = model.forward if model.modules.has_logits else model.encode
    out, cache = run(IDS[None])
    np.testing.assert_array_equal(passed[-1].array.reshape(out[0].shape), out[0])
    for name in cache:
        if name in passed.names:                  # x of a layer is the step before it, under another name
            np.testing.assert_array_equal(passed[name].array, cache[name][0])


def test_the_mathml_is_well_formed(model):
    for step in forward_pass(model, IDS):
        assert ElementTree.fromstring(step.formula.mathml).tag.endswith("math")
        assert step.to_dict()["shape"] == list(step.shape)


def test_every_cell_is_the_sum_of_its_terms(model):
    rng = np.random.default_rng(0)
    for step in forward_pass(model, IDS).steps[1:]:
        for _ in range(3):
            *head, row, column = (int(rng.integers(n)) for n in step.shape)
            cell = explain_cell(step, row, column, *head)
            assert cell.total == pytest.approx(cell.value, rel=1e-10, abs=1e-12), step.name
            assert cell.value == step.array[(*head, row, column)]
            for term in cell.terms:
                assert term.value == pytest.approx(np.prod([factor.value for factor in term.factors]))
            assert cell.to_dict()["terms"][0]["factors"]


def test_a_cell_of_a_product_names_its_factors():
    model = small()
    passed = forward_pass(model, IDS[:3])
    cell = explain_cell(passed["ffn_hidden_0"], 1, 5)
    assert cell.terms[3].factors[0].name == "ffn_input_0[1,3]"
    assert cell.terms[3].factors[1] == ("W1_0[3,5]", model.params["W1_0"][3, 5])
    assert cell.terms[-1].factors[0].name == "b1_0[5]"
    assert sum(term.value for term in cell.terms) == pytest.approx(cell.value)
    second_head = explain_cell(passed["Q_0"], 2, 1, head=1)
    assert second_head.terms[0].factors[1].name == "W_Q_0[0,9]"          # column 1 of the second head of 8


def test_a_cell_of_softmax_and_of_layernorm():
    passed = forward_pass(small(), IDS[:3])
    cell = explain_cell(passed["attention_weights_1"], 0, 2, head=1)
    assert len(cell.terms) == 3
    assert cell.quantities["numerator"] / cell.quantities["denominator"] == pytest.approx(cell.value)
    cell = explain_cell(passed["middle_0"], 1, 4)
    row = passed["attention_residual_0"].array[1]
    assert cell.quantities["mean"] == pytest.approx(row.mean())
    assert cell.quantities["variance"] == pytest.approx(row.var())


def test_a_text_with_masks():
    passed = step_through_forward_pass(small(), tokenizer(), "the cat sat", mask=[2])
    assert passed.tokens == ["[CLS]", "the", "[MASK]", "sat", "[SEP]"]
    assert passed["tokens"].array.tolist() == passed.ids.tolist()
    assert passed["logits"].shape == (5, 18)
    assert passed["scores_0"].input_shapes == {"Q_0": (2, 5, 8), "K_0": (2, 5, 8)}


def test_bad_input_is_refused():
    model, words = small(), tokenizer()
    passed = forward_pass(model, IDS[:3])
    with pytest.raises(InputError, match="no step 'Q_9'"):
        passed["Q_9"]
    with pytest.raises(InputError, match="head=0"):
        explain_cell(passed["Q_0"], 0, 0)
    with pytest.raises(InputError, match="no heads"):
        explain_cell(passed["hidden_0"], 0, 0, head=0)
    with pytest.raises(InputError, match=r"no cell \[0, 16\]"):
        explain_cell(passed["hidden_0"], 0, 16)
    with pytest.raises(InputError, match="not computed"):
        explain_cell(passed["tokens"], 0, 0)
    with pytest.raises(InputError, match="one sequence"):
        forward_pass(model, np.ones((2, 3), int))
    with pytest.raises(InputError, match="no position 9"):
        step_through_forward_pass(model, words, "the cat", mask=[9])
    with pytest.raises(InputError, match="takes 16"):
        step_through_forward_pass(model, words, "the cat " * 20)
