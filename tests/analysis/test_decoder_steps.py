"""DeBERTa in the explorer: every number is explained, and every gradient stands up to a finite difference."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.analysis.passes.backward_steps import backward_pass, verify_entry
from mini_bert.analysis.passes.forward_steps import explain_cell, forward_pass

SIZES = {"num_layers": 3, "num_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 30,
         "max_seq_length": 9, "position_embeddings": "none", "activation": "gelu"}


@pytest.fixture(scope="module")
def passed():
    model = MiniBERT(ModelConfig(**SIZES, stack="enhanced_decoder", score_terms="disentangled(reach=3, norm=true)"),
                     dtype=np.float64)
    model.params.flat += 0.2 * np.random.default_rng(0).standard_normal(model.params.flat.size)
    return forward_pass(model, np.arange(5, 12))


def test_the_last_number_of_every_step_is_explained(passed):
    for step in passed.steps[1:]:
        *head, row, column = (n - 1 for n in step.shape)
        cell = explain_cell(step, row, column, head=head[0] if head else None)
        assert cell.total == pytest.approx(step.array[-1, -1] if not head else step.array[-1, -1, -1]), step.name


def test_every_gradient_is_verified(passed):
    backward = backward_pass(passed, {0: 7, 4: 9})
    wrong = [step.name for step in backward if not verify_entry(step, [n - 1 for n in step.shape]).passed]
    assert wrong == []
