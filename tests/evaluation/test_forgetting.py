"""Catastrophic forgetting: scores before and after."""

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.forgetting import masked_before_and_after, measure_catastrophic_forgetting
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS

CONFIG = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=9, max_seq_length=16)


def test_each_old_task_is_measured_before_and_after_the_new_ones():
    def damage(model: MiniBERT) -> MiniBERT:
        other = MiniBERT(model.config, seed=0)
        other.params.flat[...] = model.params.flat * 0.5
        return other

    model = MiniBERT(CONFIG)
    size = float(np.abs(model.params.flat).sum())
    found = measure_catastrophic_forgetting(
        model, {"size": lambda network: float(np.abs(network.params.flat).sum())}, [damage, damage])
    assert found.before["size"] == pytest.approx(size)
    assert found.lost["size"] == pytest.approx(0.75 * size, rel=1e-5)
    with pytest.raises(InputError, match="no old task"):
        measure_catastrophic_forgetting(model, {}, [damage])


def test_masked_scores_of_an_unchanged_encoder_are_the_same(tmp_path):
    (tmp_path / "text.txt").write_text("a b c d " * 40)
    prepare([str(tmp_path / "text.txt")], WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b", "c", "d"]), tmp_path / "made",
            heldout=0, workers=1)
    model, corpus = MiniBERT(CONFIG), Corpus(tmp_path / "made")
    task = TaskModel(model, "sequence", 2)
    before, after = masked_before_and_after(model, task, corpus, length=16)
    assert before == after
    task.params["W_V_0"][...] += 1
    _, moved = masked_before_and_after(model, task, corpus, length=16)
    assert moved.loss != before.loss
    headless = MiniBERT(ModelConfig(**{**CONFIG.to_dict(), "mlm_head": "none"}))
    with pytest.raises(InputError, match="no MLM head"):
        masked_before_and_after(headless, task, corpus)
