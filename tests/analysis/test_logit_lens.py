"""The logit lens ends in the model's own prediction and starts at the embeddings."""

import numpy as np
import pytest
from hand_built_models import WITH_HEAD, build, small, tokenizer

from mini_bert import InputError, MiniBERT, ModelConfig
from mini_bert.analysis.passes.logit_lens import lens_of_text, logit_lens

IDS = np.array([2, 9, 11, 4, 3])


@pytest.mark.parametrize("name", WITH_HEAD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_last_layer_is_the_models_own_prediction(name, dtype):
    model = build(WITH_HEAD[name], dtype)
    lens = logit_lens(model, IDS)
    logits, _ = model.forward(IDS[None])
    # a pass that keeps nothing for a backward computes GELU in another order, so the last digits may differ
    np.testing.assert_allclose(lens.logits[-1], logits[0], rtol=0, atol=16 * np.finfo(dtype).eps * abs(logits).max())
    assert lens.names == ["embeddings", "hidden_0", "hidden_1"]
    np.testing.assert_allclose(lens.divergence[-1], 0, atol=1e-6)
    assert (lens.divergence[:-1] > 0).all()


def test_layers_that_do_nothing_predict_the_same():
    model = small()
    for i in range(2):                    # only the LayerNorms are left, and only the first changes much
        for name in (f"W_O_{i}", f"W2_{i}", f"b2_{i}"):
            model.params[name][...] = 0
    for name in model.params:
        if "gamma" in name or "beta" in name:
            model.params[name][...] = "gamma" in name
    lens = logit_lens(model, IDS)
    np.testing.assert_allclose(lens.logits[1], lens.logits[2], atol=1e-3)
    np.testing.assert_allclose(lens.logits[0], lens.logits[2], atol=1e-2)


def test_entropy_probability_and_rank_of_predictions():
    model = small()
    lens = logit_lens(model, IDS, [1, 3])
    p = lens.probabilities
    np.testing.assert_allclose(p.sum(axis=-1), 1)
    np.testing.assert_allclose(lens.entropy, -(p * np.log(p)).sum(axis=-1))
    chances, ranks = lens.target([7, 9])
    np.testing.assert_allclose(chances[:, 1], p[:, 1, 9])
    assert ranks[2, 0] == (p[2, 0] > p[2, 0, 7]).sum() + 1         # ranks start at 1


def test_a_text_is_read_at_its_masks():
    model, words = small(), tokenizer()
    lens = lens_of_text(model, words, "the [MASK] sat")
    assert lens.positions == [2]
    top = lens.top(words, 3)
    assert top[-1][0][0].id == lens.logits[-1, 0].argmax()
    assert [len(row) for row in top[0]] == [3]
    assert top[0][0][0].probability >= top[0][0][1].probability
    assert lens_of_text(model, words, "the cat").positions == [0, 1, 2, 3]
    assert len(lens.to_dict(words)["top"]) == 3


def test_bad_input_is_refused():
    model = small()
    with pytest.raises(InputError, match="0 to 4"):
        logit_lens(model, IDS, [5])
    with pytest.raises(InputError, match="2 positions"):
        logit_lens(model, IDS, [1, 2]).target([3])
    with pytest.raises(InputError, match="no MLM head"):
        logit_lens(MiniBERT(ModelConfig.from_dict({**model.config.to_dict(), "mlm_head": "none"})), IDS)
