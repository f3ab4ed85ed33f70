"""Training that several processes divide: the bits of one, and a share of its memory. The processes are threads."""

from itertools import count

import numpy as np
import pytest
from process_threads import ThreadProcess, together

from mini_bert import MiniBERT, ModelConfig, NumericalError
from mini_bert.core.gradients import add_mlm_gradients
from mini_bert.core.registry import register
from mini_bert.errors import ConfigError
from mini_bert.objectives.masked import MaskedLM
from mini_bert.text.batches import MLMBatch
from mini_bert.text.masking import mask_tokens
from mini_bert.training.config import TrainingConfig
from mini_bert.training.optimisers.adamw import AdamW
from mini_bert.training.runs.optimiser_state import whole_state
from mini_bert.training.trainer import Trainer

SMALL = {"num_layers": 2, "num_heads": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 60,
         "max_seq_length": 16, "dropout": 0.1}
MODELS = {"plain": ModelConfig(**SMALL),
          "tied": ModelConfig(**SMALL, mlm_head="bert", token_types=2, pooler="tanh", block="pre_ln",
                              embedding_layernorm=True, attention_bias=True)}


class Batches:
    """Eleven sequences of several lengths; in some micro-batches nothing is masked."""

    def __getitem__(self, step):
        rng = np.random.default_rng(step)
        mask = np.arange(12) < rng.integers(4, 13, 11)[:, None]
        ids = np.where(mask, rng.integers(5, 60, (11, 12)), 0)
        masked, targets, positions = mask_tokens(ids, 60, 4, 0.2, step)
        positions[rng.integers(0, 11, 4)] = False
        return MLMBatch(masked, targets, positions, mask)


def trained(model, size, threads=1, **settings):
    """Losses, weights and optimiser state of a few steps, of each process; and the bytes of state that it keeps."""
    config = TrainingConfig(**{"steps": 3, "batch_size": 11, "micro_batch_size": 1, "threads": threads,
                               "learning_rate": 1e-2, "warmup_steps": 1} | settings)

    def one(processes=None):
        trainer = Trainer(MiniBERT(MODELS[model], seed=0), Batches(), config, processes=processes)
        losses = list(trainer.steps())
        state = {name: array.tobytes() for name, array in whole_state(trainer.optimiser).items()}
        kept = sum(array.nbytes for array in trainer.optimiser.state.values())
        return losses, trainer.model.params.flat.tobytes(), state, kept

    return [one()] if size == 0 else together(size, one)


@pytest.fixture(params=["one host", "several hosts"])
def hosts(request, monkeypatch):
    monkeypatch.setattr(ThreadProcess, "near", request.param == "one host")


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("settings", [
    {}, {"optimiser": "lion"}, {"optimiser": "muon"}, {"optimiser": "lookahead(adamw, k=2)"},
    {"optimiser": "ema(muon)", "moments": "bfloat16"}, {"clipping": "adaptive(limit=0.01)"}],
    ids=lambda settings: " ".join(settings.values()) or "adamw")
def test_any_number_of_processes_gives_the_same_bits(model, settings, size):
    (losses, weights, state, _), = trained(model, 0, **settings)
    found = trained(model, size, threads=2, **settings)
    assert all(one[0] == losses for one in found)
    assert all(one[1] == weights for one in found)
    assert found[0][2] == state


def test_more_processes_than_micro_batches_give_the_same_bits():
    (_losses, weights, _, _), = trained("plain", 0, micro_batch_size=6)
    assert {one[1] for one in trained("plain", 4, micro_batch_size=6)} == {weights}


@pytest.mark.parametrize("optimiser", ["adamw", "ema(lion)"])
def test_the_processes_share_the_memory_of_the_optimiser(optimiser):
    (_, _, _, whole), = trained("plain", 0, optimiser=optimiser)
    kept = [one[3] for one in trained("plain", 3, optimiser=optimiser)]
    assert sum(kept) == whole
    assert max(kept) < 0.5 * whole


def test_what_fails_in_one_process_is_skipped_by_all():
    def skipped(processes=None):
        class Fails(MaskedLM):
            def add_gradients(self, part, grads, key, factors):
                if next(calls) == 1:
                    raise NumericalError("not finite")
                return super().add_gradients(part, grads, key, factors)

        calls = count() if processes is None or processes.rank == 1 else count(100)
        model = MiniBERT(MODELS["plain"], seed=0)
        settings = TrainingConfig(steps=3, batch_size=11, micro_batch_size=3, threads=1)
        trainer = Trainer(model, Batches(), settings, objective=Fails(model, settings.passes()), processes=processes)
        list(trainer.steps())
        return trainer.state.skipped, model.params.flat.tobytes()

    alone = skipped()
    assert alone[0] == 1
    assert together(2, skipped) == [alone, alone]


def test_an_optimiser_with_a_step_of_its_own_is_refused():
    class Own(AdamW):
        def step(self, gradients, **options):
            return None

    def divide(processes):
        with pytest.raises(ConfigError, match="step of its own"):
            Own(MiniBERT(MODELS["plain"]).params).divide(processes)

    together(2, divide)


def test_gradients_of_several_processes_are_those_of_the_whole_batch():
    """Computed without any micro-batches."""
    from mini_bert.training.update import BatchGradients
    from mini_bert.workers import Workers

    model, batch = MiniBERT(MODELS["tied"], dtype=np.float64), Batches()[0]
    expected = model.params.zeros_like()
    add_mlm_gradients(model, expected, batch.input_ids, batch.target_ids, batch.mask_positions, batch.attention_mask)
    size = model.params.flat.size
    parts = [slice(0, size // 3), slice(size // 3, size // 2), slice(size // 2, size)]

    def shard(processes):
        objective = MaskedLM(model, TrainingConfig(micro_batch_size=2, batch_size=11).passes())
        computed = BatchGradients(objective, Workers(1), processes, parts)
        computed.compute(batch)
        return computed.gradients.flat[parts[processes.rank]].copy()

    assert np.allclose(np.concatenate(together(3, shard)), expected.flat, rtol=1e-10, atol=1e-12)


def test_a_clipping_that_does_not_say_what_it_needs_together_is_refused():
    @register("clipping", "of_this_test")
    class Unknown:
        def __init__(self, params):
            pass

        def __call__(self, gradients, norm, count, workers):
            return 1 / count

    trained("plain", 0, clipping="of_this_test")
    with pytest.raises(ConfigError, match="does not say what it needs together"):
        trained("plain", 2, clipping="of_this_test")
