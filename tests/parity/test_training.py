"""Training beside PyTorch: the optimiser alone, and fifty steps of the same model on the same data."""

import json
from pathlib import Path

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.randomness import generator
from mini_bert.text.batches import MLMBatch
from mini_bert.text.masking import mask_tokens
from mini_bert.training.config import TrainingConfig
from mini_bert.training.optimisers.adamw import AdamW
from mini_bert.training.optimisers.muon import Muon
from mini_bert.training.trainer import Trainer

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
CURVE = Path(__file__).parents[1] / "reference" / "loss_curve.json"


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_a_hundred_steps_of_adamw_are_torchs(dtype, limit):
    layout = [ParamSpec("W", (30, 20), 1.0), ParamSpec("b", (20,), 1.0)]
    params = Parameters(layout, dtype)
    params.initialise(0)
    W, b = (torch.nn.Parameter(torch.tensor(params[name])) for name in ("W", "b"))
    theirs = torch.optim.AdamW([{"params": [W], "weight_decay": 0.01}, {"params": [b], "weight_decay": 0.0}], lr=1e-3)
    ours = AdamW(params, 1e-3, weight_decay=0.01)
    for step in range(100):
        grads = Parameters(layout, dtype)
        grads.flat[...] = np.random.default_rng(step).standard_normal(grads.flat.size)
        W.grad, b.grad = torch.tensor(grads["W"]), torch.tensor(grads["b"])
        theirs.step()
        ours.step(grads)
    worst = max(np.abs(params["W"] - W.detach().numpy()).max(), np.abs(params["b"] - b.detach().numpy()).max())
    print(f"parameters differ by at most {worst:.1e} after 100 steps")
    assert worst <= limit


def test_muon_is_torchs_but_for_its_half_precision():
    """PyTorch orthogonalises in bfloat16, so the directions agree to its rounding; its matrices are transposed."""
    layout = [ParamSpec("W", (24, 60), 1.0, component="attention", layer=0)]
    params = Parameters(layout, np.float32)
    params.initialise(0)
    W = torch.nn.Parameter(torch.tensor(params["W"].T.copy()))
    theirs = torch.optim.Muon([W], lr=1e-2, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    ours = Muon(params, 1e-2, weight_decay=0.1)
    for step in range(20):
        before = params["W"].copy()
        grads = Parameters(layout, np.float32)
        grads.flat[...] = np.random.default_rng(step).standard_normal(grads.flat.size)
        W.grad = torch.tensor(grads["W"].T.copy())
        theirs.step()
        ours.step(grads)
        moved, expected = params["W"] - before, W.detach().numpy().T - before
        assert np.linalg.norm(moved - expected) <= 0.02 * np.linalg.norm(expected)
        with torch.no_grad():
            W.copy_(torch.tensor(params["W"].T.copy()))


class Batches:
    """As in tests/training/test_trainer.py."""

    def __init__(self, vocab_size: int):
        self.vocab_size = vocab_size

    def __getitem__(self, step: int) -> MLMBatch:
        rng = generator(0, "test batch", step)
        ids = 5 + (rng.random((8, 16)) ** 3 * (self.vocab_size - 5)).astype(np.int64)
        masked, targets, positions = mask_tokens(ids, self.vocab_size, 4, 0.15, rng)
        return MLMBatch(masked, targets, positions, np.ones((8, 16), bool))


def torch_loss(p, config: ModelConfig, batch: MLMBatch):
    """The model in PyTorch's words, written from the formulas; all positions, then the masked ones."""
    F = torch.nn.functional
    H, A = config.hidden_size, config.num_heads
    ids = torch.tensor(batch.input_ids)
    B, T = ids.shape
    x = p["token_embeddings"][ids] + p["position_embeddings"][:T]

    def norm(y, name):
        return F.layer_norm(y, (H,), p[name.replace("#", "gamma")], p[name.replace("#", "beta")],
                            config.layernorm_eps)

    for i in range(config.num_layers):
        q, k, v = ((x @ p[f"W_{letter}_{i}"]).view(B, T, A, H // A).transpose(1, 2) for letter in "QKV")
        weights = torch.softmax(q @ k.transpose(-1, -2) / (H // A) ** 0.5, -1)
        x = norm(x + (weights @ v).transpose(1, 2).reshape(B, T, H) @ p[f"W_O_{i}"], f"ln1_#_{i}")
        fed = torch.relu(x @ p[f"W1_{i}"] + p[f"b1_{i}"]) @ p[f"W2_{i}"] + p[f"b2_{i}"]
        x = norm(x + fed, f"ln2_#_{i}")
    logits = norm(x, "final_ln_#") @ p["mlm_head_W"] + p["mlm_head_b"]
    chosen = torch.tensor(batch.mask_positions)
    return F.cross_entropy(logits[chosen], torch.tensor(batch.target_ids)[chosen])


def test_fifty_steps_follow_pytorch():
    reference = json.loads(CURVE.read_text())
    config = ModelConfig.from_dict(reference["model"])
    training = TrainingConfig.from_dict(reference["training"])
    model, batches = MiniBERT(config, seed=0), Batches(config.vocab_size)
    p = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in model.params.items()}
    optimiser = torch.optim.AdamW(
        [{"params": [w for w in p.values() if w.ndim > 1], "weight_decay": training.weight_decay},
         {"params": [w for w in p.values() if w.ndim == 1], "weight_decay": 0.0}], lr=1.0)
    trainer = Trainer(model, batches, training)
    steps, differences = trainer.steps(), []
    for step in range(50):
        for group in optimiser.param_groups:
            group["lr"] = trainer.learning_rate()
        ours = next(steps)
        loss = torch_loss(p, config, batches[step])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), training.max_grad_norm)
        optimiser.step()
        differences.append(abs(ours - loss.item()))
    steps.close()
    print(f"losses of 50 steps differ by at most {max(differences):.1e}")
    assert max(differences) <= 1e-4
