"""A model whose block has no attention: what looks at heads is refused in one sentence, everything else works."""

import numpy as np
import pytest
from hand_built_models import small, tokenizer

from mini_bert import InputError, MiniBERT, ModelConfig
from mini_bert.analysis import MathematicalExplorer, query_key_terms
from mini_bert.analysis.attention.importance import head_importance_by_gradient, head_importance_by_masking
from mini_bert.analysis.passes.forward_steps import explain_cell, forward_pass
from mini_bert.analysis.passes.sequences import masked_sentence
from mini_bert.core.formulas import Formula, StepSpec
from mini_bert.core.registry import make, register, restored_registry
from mini_bert.explorer.answers import ANSWERS
from mini_bert.explorer.session import Session
from mini_bert.report.figures import attention_on

TEXT = "the cat sat on the mat"
SAID = "Layer 0 of this model computes no .*: its block has no attention"


class MlpBlock:
    """x + f(x): tokens are not mixed. Its formula has the name of an operation, and means something else."""

    def __init__(self, config, layer):
        self.feedforward = make("feedforward", config.feedforward, config, layer)

    def layout(self):
        yield from self.feedforward.layout()

    def forward(self, params, x, ctx):
        f, cache = self.feedforward.forward(params, x, ctx)
        return ctx.hook("hidden", ctx.select.take(x) + ctx.select.take(f)), {"feedforward": cache}

    def backward(self, dy, cache, grads, ctx):
        dx = np.zeros((ctx.select.B * ctx.select.T, dy.shape[1]), dy.dtype)
        ctx.select.take_backward(ctx.hook("hidden", dy), dx)
        return dx + self.feedforward.backward(dx, cache["feedforward"], grads, ctx)

    def steps(self, x):
        yield from self.feedforward.steps(x)
        yield StepSpec("hidden", "Output", "y", Formula("softmax", "{0} + {1}", ("d{y}", "d{y}")), (x, "ffn_output"))

    def floats(self, sizes):
        return self.feedforward.floats(sizes)


@pytest.fixture
def model():
    with restored_registry():
        register("block", "mlp_only")(MlpBlock)
        yield MiniBERT(ModelConfig.from_dict({**small().config.to_dict(), "block": "mlp_only"}))


@pytest.mark.parametrize("ask", [
    lambda model: MathematicalExplorer(model, tokenizer()).explore_attention_heads(TEXT),
    lambda model: query_key_terms(model, tokenizer(), TEXT, 0, 0, 1, 2),
    lambda model: attention_on(model, tokenizer(), TEXT),
    lambda model: head_importance_by_masking(model, [masked_sentence(model, tokenizer(), TEXT, seed=0)]),
    lambda model: head_importance_by_gradient(model, [masked_sentence(model, tokenizer(), TEXT, seed=0)]),
    lambda model: ANSWERS["attention"](Session(model, tokenizer()), {"text": TEXT})],
    ids=["heads", "query and key", "figure", "masking", "gradient", "explorer"])
def test_what_looks_at_heads_says_that_there_are_none(model, ask):
    with pytest.raises(InputError, match=SAID):
        ask(model)


def test_a_formula_is_explained_by_its_terms_whatever_its_name(model):
    step = forward_pass(model, np.array([2, 9, 11, 3]))["hidden_0"]
    cell = explain_cell(step, 1, 2)
    assert cell.total == pytest.approx(cell.value, rel=1e-5)
    assert step.signed
