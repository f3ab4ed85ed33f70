"""Patching everything restores the clean output; patching equal or unseen activations changes nothing."""

import numpy as np
import pytest
from hand_built_models import WITH_HEAD, build, small, tokenizer

from mini_bert import InputError
from mini_bert.analysis.passes.patching import SITES, patch_activations, patch_texts, replacing

CLEAN, CORRUPTED = np.array([2, 9, 11, 4, 3]), np.array([2, 6, 11, 4, 3])


@pytest.mark.parametrize("name", WITH_HEAD)
def test_patching_a_whole_layer_restores_the_clean_run(name):
    model = build(WITH_HEAD[name])
    found = patch_activations(model, CLEAN, CORRUPTED, 3, 7, 12)
    logits, _ = model.forward(CLEAN[None])
    assert found.clean == pytest.approx(logits[0, 3, 7] - logits[0, 3, 12])
    assert found.clean != found.corrupted
    stack = model.modules.stack                           # between the steps of a decoder its keys come from below
    restoring = [layer for layer in range(len(stack.layers)) if layer < stack.below or layer == len(stack.layers) - 1]
    np.testing.assert_allclose(np.asarray(found.patched_whole)[restoring], found.clean, rtol=1e-10)
    np.testing.assert_allclose(np.asarray(found.effect_whole)[restoring], 1, rtol=1e-9)
    # after the last layer only the predicted position matters
    np.testing.assert_allclose(found.effect[-1], [0, 0, 0, 1, 0], atol=1e-9)


@pytest.mark.parametrize("site", SITES)
def test_patching_a_run_with_itself_changes_nothing(site):
    found = patch_activations(small(), CLEAN, CLEAN, 3, 7, 12, site=site)
    np.testing.assert_allclose(found.patched, found.clean)
    with pytest.raises(InputError, match="nothing to restore"):
        _ = found.effect


@pytest.mark.parametrize("site", SITES)
def test_patching_one_position_equals_a_forward_pass_with_it(site):
    model = small()
    found = patch_activations(model, CLEAN, CORRUPTED, 3, 7, 12, site=site)
    kept = {}
    model.forward(CLEAN[None], hook=lambda name, value: kept.setdefault(name, value.copy()).copy())

    def change(value):
        value[1] = kept[f"{site}_0"][1]
        return value

    logits, _ = model.forward(CORRUPTED[None], hook=replacing({f"{site}_0": change}))
    assert found.patched[0, 1] == pytest.approx(logits[0, 3, 7] - logits[0, 3, 12], rel=1e-10)


def test_the_effect_is_where_the_information_moves():
    model = small()
    model.params["W_V_1"][...] = 0        # the second layer attends to nothing, so the first must move the word
    found = patch_activations(model, CLEAN, CORRUPTED, 3, 7, 12)
    np.testing.assert_allclose(found.effect[0], [0, 0, 0, 1, 0], atol=1e-9)
    attended = patch_activations(model, CLEAN, CORRUPTED, 3, 7, 12, site="attention_output")
    np.testing.assert_allclose(attended.effect[0], [0, 0, 0, 1, 0], atol=1e-9)
    np.testing.assert_allclose(attended.effect[1], 0, atol=1e-9)


def test_patching_texts():
    found = patch_texts(small(), tokenizer(), "the cat [MASK]", "the dog [MASK]", "sat", "ran")
    assert found.tokens[1] == ["[CLS]", "the", "dog", "[MASK]", "[SEP]"]
    assert found.patched.shape == (2, 5)
    assert found.to_dict()["site"] == "hidden"


def test_bad_input_is_refused():
    model, words = small(), tokenizer()
    for problem, call in {"5 and 3 tokens": lambda: patch_activations(model, CLEAN, CLEAN[:3], 3, 7, 12),
                          "no site": lambda: patch_activations(model, CLEAN, CORRUPTED, 3, 7, 12, site="Q"),
                          "no position 7": lambda: patch_activations(model, CLEAN, CORRUPTED, 7, 7, 12),
                          "no piece 44": lambda: patch_activations(model, CLEAN, CORRUPTED, 3, 44, 12),
                          r"0 \[MASK\]s": lambda: patch_texts(model, words, "the cat", "the dog", "sat", "ran"),
                          }.items():
        with pytest.raises(InputError, match=problem):
            call()
