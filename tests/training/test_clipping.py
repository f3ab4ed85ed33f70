"""Clipping: by the global norm, and by unit; from a config to the step."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, MiniBERT, load_preset
from mini_bert.core.modules.assembly import parameter_specs
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.objectives.masked import MaskedLM
from mini_bert.training.clipping.adaptive import AdaptiveClipping, unit_axes
from mini_bert.training.clipping.clipping import clipping_from
from mini_bert.training.config import TrainingConfig, load_run_config
from mini_bert.training.finetune import FinetuneConfig
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.trainer import Trainer
from mini_bert.workers import Workers, workers

LAYOUT = [ParamSpec("E", (70_000, 4), 1.0, component="embeddings", axes=("vocabulary",)),
          ParamSpec("W", (30, 40), 1.0, component="attention", layer=0), ParamSpec("b", (40,), layer=0),
          ParamSpec("u", (3, 5), 1.0, component="attention", layer=0, axes=("heads",)),
          ParamSpec("head", (8, 9), 1.0, component="mlm_head", axes=("hidden", "vocabulary"))]


def example(dtype=np.float64) -> tuple[Parameters, Parameters]:
    """Weights, and gradients from far below to far above the limit."""
    params = Parameters(LAYOUT, dtype)
    params.initialise(0)
    grads = params.zeros_like()
    rng = np.random.default_rng(1)
    grads.flat[...] = rng.standard_normal(grads.flat.size)
    grads["E"][...] *= 10.0 ** rng.integers(-6, 3, (70_000, 1))
    grads["W"][...] *= 10.0 ** rng.integers(-6, 3, 40)
    grads["E"][5] = 0.0
    return params, grads


def by_the_book(params: Parameters, grads: Parameters, count: int, limit: float = 0.01) -> dict[str, np.ndarray]:
    """One unit at a time: rows of tables, columns of matrices, whole biases; the head stays."""
    found = {name: grads[name] / count for name in grads}
    units = [*((("E", i)) for i in range(0, 70_000, 977)), *(("u", i) for i in range(3)),
             *(("W", (slice(None), j)) for j in range(40)), ("b", slice(None))]
    for name, place in units:
        g, w = found[name][place], params[name][place]
        size, allowed = np.linalg.norm(g), limit * max(np.linalg.norm(w), 1e-3)
        found[name][place] = g * min(1.0, allowed / size) if size else g
    return found


@pytest.mark.parametrize("limit", [0.01, 0.5])
def test_the_gradient_of_every_unit_is_at_most_a_share_of_its_weights(limit):
    params, grads = example()
    expected = by_the_book(params, grads, 7, limit)
    before = grads["head"].copy()
    scale = AdaptiveClipping(params, limit)(grads, 1.0, 7, Workers(1))
    for name in ("W", "b", "u"):
        np.testing.assert_allclose(scale * grads[name], expected[name], rtol=1e-12)
    np.testing.assert_allclose(scale * grads["E"][::977], expected["E"][::977], rtol=1e-12)
    assert not grads["E"][5].any()
    np.testing.assert_array_equal(grads["head"], before)


def test_gradients_within_the_limit_keep_their_bits_and_threads_change_none():
    results = []
    for threads in (1, 2, 4):
        params, grads = example(np.float32)
        with workers(threads) as team:
            AdaptiveClipping(params)(grads, 1.0, 3, team)
        results.append(grads.flat.copy())
    assert all(np.array_equal(results[0], other) for other in results[1:])
    params, grads = example(np.float32)
    grads.flat *= 1e-9
    before = grads.flat.copy()
    AdaptiveClipping(params)(grads, 1.0, 3, Workers(1))
    np.testing.assert_array_equal(grads.flat, before)


def test_units_are_told_by_what_a_parameter_is():
    axes = {spec.name: unit_axes(spec) for preset in ("mini", "mini-xlnet", "mini-albert", "mini-relative")
            for spec in parameter_specs(load_preset(preset))}
    columns, rows, alone = (0,), (1,), ()
    expected = {"token_embeddings": rows, "position_embeddings": rows, "token_type_embeddings": rows,
                "relative_keys_0": rows, "content_bias_0": rows, "segment_keys_0": (2,), "W_Q_0": columns,
                "W2_0": columns, "embedding_projection_W": columns, "pooler_W": columns, "b1_0": (0,),
                "ln1_gamma_0": (0,), "mlm_head_W": alone, "mlm_head_b": alone, "mlm_transform_W": alone,
                "sentence_W": alone}
    assert {name: axes[name] for name in expected} == expected


def test_a_step_is_clipped_as_its_config_says(model_config, settings, corpus):
    """Plain descent, so that the length of a step is that of the gradient."""
    moved = {}
    for word, norm in (("norm", 0.0), ("norm", 0.01), ("norm(max_grad_norm=0.01)", 0.0), ("adaptive(limit=1e-4)", 1.0)):
        model = MiniBERT(replace(model_config, dropout=0.0))
        config = replace(settings, optimiser="sgd", learning_rate=1.0, weight_decay=0.0, warmup_steps=0, clipping=word,
                         max_grad_norm=norm, steps=1)
        before = {name: value.copy() for name, value in model.params.items()}
        Trainer(model, MaskedLM(model).batches(corpus, config.resolved(model_config)), config).train()
        moved[word, norm] = {name: value - before[name] for name, value in model.params.items()}
    total = [np.sqrt(sum(np.square(change).sum() for change in changes.values())) for changes in moved.values()]
    assert total[0] > 0.02
    assert total[1:3] == pytest.approx([0.01, 0.01], rel=1e-3)
    changes = moved["adaptive(limit=1e-4)", 1.0]
    assert (np.linalg.norm(changes["W_Q_0"], axis=0) <= 1.001e-4 * np.linalg.norm(before["W_Q_0"], axis=0)).all()
    np.testing.assert_allclose(changes["mlm_head_W"], moved["norm", 0.0]["mlm_head_W"], atol=1e-7)


def test_a_killed_run_with_adaptive_clipping_ends_with_the_same_bytes(model_config, settings, corpus, tmp_path):
    _, config = load_run_config("debug", ["training.clipping=adaptive(limit=0.02)"])
    config = replace(settings, clipping=config.clipping, steps=6, eval_every=0)
    whole = start_run(model_config, config, corpus.directory, tmp_path / "whole")
    whole.train()
    killed = start_run(model_config, config, corpus.directory, tmp_path / "killed")
    with killed._loop() as loop:
        for _ in range(5):
            killed._advance(loop)
    killed.lock.release()
    resumed = resume_run(tmp_path / "killed", threads=1)
    assert (resumed.state.step, resumed.clipping.limit) == (4, 0.02)
    resumed.train()
    np.testing.assert_array_equal(whole.model.params.flat, resumed.model.params.flat)


@pytest.mark.parametrize(("word", "norm", "said"), [
    ("adaptve", 1.0, "nearest is 'adaptive', and all are adaptive, norm"), ("adaptive(share=1)", 1.0, "limit, eps"),
    ("adaptive(limit=0)", 1.0, "limit of adaptive must be above zero, not 0"), ("norm", -1.0, "must be .*, not -1"),
    ("adaptive(eps=true)", 1.0, "eps of adaptive"), ("adaptive", 3.0, "is set, but clipping is adaptive")])
def test_wrong_words_are_answered_in_a_sentence(word, norm, said):
    def used(config):
        settings = config(clipping=word, max_grad_norm=norm)
        clipping_from(settings.clipping, example()[0], settings.max_grad_norm)

    for config in (TrainingConfig, FinetuneConfig):
        with pytest.raises(ConfigError, match=said):
            used(config)
