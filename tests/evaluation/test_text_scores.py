"""How models that do not fill masks compare texts, against a direct computation."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.core.ops.cross_entropy import log_softmax
from mini_bert.errors import InputError
from mini_bert.evaluation.formats.agreement import AgreementItem
from mini_bert.evaluation.zero_shot.agreement import agreement
from mini_bert.evaluation.zero_shot.text_scores import text_scores
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = ["the", "cat", "sat", "on", "mat", "un", "##aff", "##able", "."]
TEXTS = ["the cat sat on the mat.", "the cat", "unaffable cat.", "the cat sat.", "mat"]
CONFIG = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=14, max_seq_length=10)


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


def made(**words) -> MiniBERT:
    model = MiniBERT(replace(CONFIG, **words), dtype=np.float64)
    model.params.flat += 0.3 * np.random.default_rng(1).standard_normal(model.params.flat.size)
    return model


def test_a_causal_model_predicts_every_piece_from_those_before_it(tokenizer):
    model = made(score_terms="causal")
    found = text_scores(model, tokenizer, TEXTS, threads=1).totals["token"]
    for text, total in zip(TEXTS, found, strict=True):
        ids = [tokenizer.vocabulary.cls, *tokenizer.ids(text)]
        logs = log_softmax(model.forward(np.array([ids]))[0][0])
        assert total == pytest.approx(sum(logs[i, ids[i + 1]] for i in range(len(ids) - 1)), abs=1e-9)


def test_a_causal_model_reads_a_long_text_in_windows_and_predicts_each_piece_once(tokenizer):
    model = made(score_terms="causal", position_embeddings="none")
    for name in model.params:                         # it knows frequencies alone, so windows cannot matter
        if name.startswith("mlm_head_W"):
            model.params[name][...] = 0
    text = "the cat sat on the mat " * 5
    found = text_scores(model, tokenizer, [text, ""], threads=1)
    logs = log_softmax(model.params["mlm_head_b"])
    assert found.totals["token"] == pytest.approx([logs[tokenizer.ids(text)].sum(), 0], abs=1e-9)
    assert found.windowed == 1


def test_a_model_with_two_streams_is_asked_for_each_piece_last(tokenizer):
    model = made(position_embeddings="none", score_terms="relative", stack="two_stream")
    ids = np.array([tokenizer.encode(TEXTS[0])])
    expected = 0.0
    for place in range(1, ids.shape[1] - 1):
        last = (np.arange(ids.shape[1]) == place)[None]
        logits = model.forward(ids, positions=last, order=last.astype(int))[0]
        expected += log_softmax(logits)[0, ids[0, place]]
    assert text_scores(model, tokenizer, TEXTS[:1], threads=1).totals["token"][0] == pytest.approx(expected, abs=1e-9)


def test_a_discriminator_sums_the_log_odds_of_original_pieces(tokenizer):
    model = made(mlm_head="replaced_tokens")
    found = text_scores(model, tokenizer, TEXTS, threads=1).totals["token"]
    for text, total in zip(TEXTS, found, strict=True):
        assert total == pytest.approx(-model.forward(np.array([tokenizer.encode(text)]))[0][0, 1:-1].sum(), abs=1e-9)


@pytest.mark.parametrize("words", [{"score_terms": "causal"}, {"mlm_head": "replaced_tokens"}])
def test_verb_forms_are_compared_in_the_way_of_the_model(tokenizer, words):
    model = made(**words)
    item = AgreementItem("the cat", "the mat", "sat", "on", 1)
    forms = [tokenizer.vocabulary.ids[word] for word in ("sat", "on")]
    if "mlm_head" in words:
        scores = [-model.forward(np.array([tokenizer.encode(f"the cat {word} the mat")]))[0][0, 3]
                  for word in ("sat", "on")]
    else:
        scores = model.forward(np.array([tokenizer.encode("the cat")[:-1]]))[0][0, -1, forms]
    assert agreement(model, tokenizer, [item], threads=1).total.accuracy["model"].mean == float(scores[0] > scores[1])


def test_what_a_model_cannot_score_is_refused(tokenizer):
    with pytest.raises(InputError, match="no head"):
        text_scores(made(mlm_head="none"), tokenizer, TEXTS)
    with pytest.raises(InputError, match="Whole words"):
        text_scores(made(score_terms="causal"), tokenizer, TEXTS, variants=("token", "word"))
