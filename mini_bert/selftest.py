"""A one-minute test of an installation: sizes, forward, loss, backward, one step, all gradient checks, all formulas."""

from collections.abc import Iterator
from math import isfinite, log
from typing import NamedTuple

import numpy as np

from .checks.check_all import check_all
from .checks.formulas import FormulaResult
from .core.config import MASK
from .core.gradients import MiniBERTGradients
from .core.model import MiniBERT
from .core.ops import operations
from .randomness import generator
from .text.masking import mask_tokens
from .training.memory import training_memory
from .training.runs.process_memory import peak_resident_bytes
from .workers import keep_freed_memory

PARAMETERS = 4_498_880
MEMORY_LIMIT = 10 * 10**9         # bytes; any laptop has these


class Outcome(NamedTuple):
    name: str
    passed: bool
    detail: str


def selftest(seed: int = 0) -> Iterator[Outcome]:
    """One training step of Mini-BERT at full size, then the gradients of every operation, of Mini-BERT and of BERT.

    Those of the whole family are `mini-bert gradcheck`'s.
    """
    keep_freed_memory()
    model = MiniBERT(seed=seed)
    config = model.config
    yield Outcome("config", config.hidden_size % config.num_heads == 0,
                     f"L={config.num_layers} H={config.hidden_size} A={config.num_heads} "
                     f"I={config.intermediate_size} T={config.max_seq_length} V={config.vocab_size}")
    count = model.get_parameter_count()
    yield Outcome("parameters", count == PARAMETERS, f"{count:,}")

    rng = generator(seed, "selftest")
    ids = rng.integers(MASK + 1, config.vocab_size, (32, config.max_seq_length))
    masked, targets, positions = mask_tokens(ids, config.vocab_size, rng=rng)
    logits, _ = model.forward(masked[:2])
    yield Outcome("forward", logits.shape == (2, config.max_seq_length, config.vocab_size)
                     and bool(np.isfinite(logits).all()), f"{masked[:2].shape} -> {logits.shape}")

    grads = MiniBERTGradients(model)
    loss_sum, masked_count = grads.accumulate_mlm(masked, targets, positions)
    loss, uniform = loss_sum / masked_count, log(config.vocab_size)
    yield Outcome("loss", abs(loss - uniform) < 0.1, f"{loss:.4f}; uniform predictions have ln V = {uniform:.4f}")

    grads.gradients.flat /= masked_count
    silent = [name for name, gradient in grads.gradients.items() if not gradient.any()]
    norm = float(np.linalg.norm(grads.gradients.flat))
    yield Outcome("backward", not silent and isfinite(norm) and norm > 0,
                     f"gradient norm {norm:.4f} over {len(grads.gradients)} parameters"
                     + (f"; no gradient: {', '.join(silent)}" if silent else ""))

    # like Adam's first step: every parameter moves by the learning rate, against its gradient
    rate = 1e-3
    model.params.flat -= rate * np.sign(grads.gradients.flat)
    after_sum, _ = grads.accumulate_mlm(masked, targets, positions)
    after = after_sum / masked_count
    yield Outcome("step", after < loss, f"loss {loss:.4f} -> {after:.4f} at learning rate {rate}")

    predicted = training_memory(config, batch_size=32).total
    used = peak_resident_bytes()
    yield Outcome("memory", max(used, predicted) < MEMORY_LIMIT,
                     f"{predicted / 1e6:.0f} MB predicted for training at batch 32"
                     + (f", {used / 1e6:.0f} MB at the peak so far" if used else ""))

    everything = list(check_all([*(operation.name for operation in operations()), "mini", "bert-base"], seed))
    results = [result for result in everything if not isinstance(result, FormulaResult)]
    worst = max(results, key=lambda result: result.error if isfinite(result.error) else float("inf"))
    failed = sum(not result.passed for result in results)
    yield Outcome("gradients", failed == 0,
                     f"{len(results) - failed} of {len(results)} agree with finite differences; "
                     f"worst relative error {worst.error:.1e} ({worst.subject}, {worst.gradient})")
    formulas = [result for result in everything if isinstance(result, FormulaResult)]
    wrong = [result.sentence for result in formulas if not result.passed]
    yield Outcome("formulas", not wrong, " ".join([f"{len(formulas) - len(wrong)} of {len(formulas)} give the numbers "
                                                   "of their steps", *wrong[:1]]))
