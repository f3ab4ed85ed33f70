"""The calls of the guide, exactly as its readers type them; only the imports differ."""

import numpy as np
import pytest

import mini_bert
from larger_bert import LARGER_BERT_CONFIG, LargerBERT
from mini_bert import (
    MiniBERT,
    MiniBERTGradients,
    MiniTransformerLayer,
    MLMDataGenerator,
    ModelFactory,
    WordPieceTokenizer,
    gradient_check,
    load_preset,
    mask_tokens,
    mlm_cross_entropy,
)


@pytest.fixture(scope="module")
def model() -> MiniBERT:
    return MiniBERT()


def test_embeddings_can_be_looked_up_and_summed(model):
    input_ids = np.array([[5, 10, 15, 20]])
    embeddings = model.token_embeddings[input_ids]
    embeddings += model.position_embeddings[:4]
    assert embeddings.shape == (1, 4, 192)
    assert model.config.hidden_size == 192
    assert model.token_embeddings.size + model.position_embeddings.size == (8192 + 64) * 192
    _, cache = model.forward(input_ids)
    assert np.allclose(cache["embeddings"], embeddings[0])           # as in the model


def test_the_attention_of_one_layer_can_be_called(model):
    X = np.random.default_rng(0).standard_normal((1, 8, 192))        # float64, as NumPy gives it
    output, cache = model._multi_head_attention(X, layer=0)
    assert output.shape == X.shape
    assert cache["Q"].shape == cache["K"].shape == cache["V"].shape == (1, 4, 8, 48)
    assert cache["scores"].shape == cache["attention_weights"].shape == (1, 4, 8, 8)
    assert cache["context"].shape == (1, 4, 8, 48)
    arrays = {key for key, value in cache.items() if isinstance(value, np.ndarray)}
    assert arrays == {"Q", "K", "V", "scores", "attention_weights", "context"}


def test_forward_returns_logits_and_a_cache_of_named_activations(model):
    input_ids = np.array([[2, 5, 6, 7, 3]])
    logits, cache = model.forward(input_ids)
    assert logits.shape == (1, 5, 8192)
    assert "attention_weights_0" in list(cache.keys())
    assert cache["attention_weights_0"][0, 0].shape == (5, 5)


def test_a_transformer_layer_can_be_made():
    assert all(hasattr(MiniTransformerLayer(), name) for name in ("forward", "backward"))
    assert {spec.name for spec in MiniTransformerLayer().layout()} <= set(MiniBERT().params)


def test_any_gradient_of_the_logits_can_be_propagated(model):
    grad_computer = MiniBERTGradients(model)
    input_ids = np.random.default_rng(0).integers(5, 100, (2, 8))
    logits, cache = model.forward(input_ids)
    grad_computer.zero_gradients()
    dummy_grad = np.random.default_rng(1).standard_normal(logits.shape) * 0.01
    grad_computer.backward_from_logits(dummy_grad, cache)
    assert len(grad_computer.gradients) == 2 + 3 * 12 + 2 + 2
    for name, grad in grad_computer.gradients.items():
        assert np.any(grad), name
        assert grad.shape == model.params[name].shape


def test_masking_loss_and_backward_in_sequence(model):
    grad_computer = MiniBERTGradients(model)
    batch = np.random.default_rng(42).integers(5, 100, (4, 16))
    input_ids, target_ids, mask_pos = mask_tokens(batch, 1000, 4, 0.15)
    logits, cache = model.forward(input_ids)
    loss, grad_logits = grad_computer.compute_mlm_loss_and_gradients(logits, target_ids, mask_pos)
    grad_computer.zero_gradients()
    grad_computer.backward_from_logits(grad_logits, cache)
    loss_sum, count = mlm_cross_entropy(logits, target_ids, mask_pos)
    assert loss == pytest.approx(loss_sum / count)
    assert loss == pytest.approx(np.log(8192), abs=0.1)
    for layer in range(3):
        assert np.linalg.norm(grad_computer.gradients[f"W_Q_{layer}"]) > 0
        assert np.linalg.norm(grad_computer.gradients[f"W1_{layer}"]) > 0


def test_mask_tokens_accepts_keyword_arguments():
    input_ids = [2, 17, 18, 19, 20, 21, 3]
    masked_ids, target_ids, mask_positions = mask_tokens(
        np.array([input_ids]), mask_token_id=4, vocab_size=8192, mask_prob=0.15)
    assert masked_ids.shape == target_ids.shape == mask_positions.shape == (1, 7)
    assert mask_positions.sum() == 1


def test_gradient_check_can_be_called():
    x = np.array([3.0])
    assert gradient_check(lambda: float((x**2).sum()), x, 2 * x).passed


def test_the_factory_creates_and_loads_models(tmp_path):
    model = ModelFactory.create_model()
    assert model.get_parameter_count() == 4_498_880
    small = ModelFactory.create_model(config_name="debug")
    small.save(tmp_path)
    assert np.array_equal(ModelFactory.load_model(tmp_path).params.flat, small.params.flat)


@pytest.mark.parametrize(("name", "preset"), [
    ("default", "mini"), ("base", "mini"), ("large", "larger"), ("mini_bert_base", "mini"),
    ("mini_bert_small", "small"), ("mini_bert_large", "larger"), ("larger_bert", "larger")])
def test_the_factory_knows_presets_by_other_names(name, preset):
    assert load_preset(name) == load_preset(preset)


def test_larger_bert_from_config_to_checkpoint(tmp_path):
    model = LargerBERT(LARGER_BERT_CONFIG)
    assert f"{model.get_parameter_count():,}" == "49,137,488"
    batch_size, seq_len = 4, 32
    input_ids = np.random.default_rng(0).integers(0, 50000, (batch_size, seq_len))
    attention_mask = np.ones((batch_size, seq_len))
    logits, _ = model.forward(input_ids, attention_mask)
    assert logits.shape == (4, 32, 50000)
    # the path is a directory, whatever its suffix
    path = tmp_path / "larger_bert_50k_best.pkl"
    model.save(path)
    other = LargerBERT(LARGER_BERT_CONFIG, seed=1)
    other.load_checkpoint(path)
    other.set_training(False)
    again, _ = other.forward(input_ids, attention_mask)
    assert np.array_equal(again, logits)


def test_every_public_name_exists():
    assert all(hasattr(mini_bert, name) for name in mini_bert.__all__)


def test_the_tokenizer_as_the_guide_uses_it(tmp_path, model):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat"]
    WordPieceTokenizer(pieces).save(tmp_path / "tokenizer_8k.pkl")       # a directory, whatever its suffix
    tokenizer = WordPieceTokenizer.load(tmp_path / "tokenizer_8k.pkl")
    input_ids = tokenizer.encode("The cat sat on mat")
    input_ids = np.array([input_ids])
    _, cache = model.forward(input_ids)
    attn = cache["attention_weights_0"][0, 0]
    tokens = tokenizer.decode(input_ids[0]).split()
    assert attn.shape == (len(tokens), len(tokens))
    masked_ids, _, _ = mask_tokens(input_ids, mask_token_id=4, vocab_size=10, mask_prob=1.0, rng=0)
    assert "[MASK]" in tokenizer.decode(masked_ids[0])


def test_the_data_generator_as_the_guide_uses_it(tmp_path):
    (tmp_path / "sample.txt").write_text("the cat sat on the mat\n\nthe mat sat\n" * 5)
    tokenizer = ModelFactory.create_tokenizer(vocab_path=_vocabulary(tmp_path), lowercase=True)
    data_generator = MLMDataGenerator(
        data_path=str(tmp_path / "sample.txt"),
        tokenizer=tokenizer,
        max_seq_length=128,
        batch_size=4,
    )
    batch = data_generator[0]
    assert batch.input_ids.shape == batch.target_ids.shape == batch.mask_positions.shape
    logits, _ = MiniBERT(load_preset("small")).forward(batch.input_ids, batch.attention_mask)
    assert logits.shape[:2] == batch.input_ids.shape


def _vocabulary(folder):
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]))
    return folder / "vocab.txt"


def test_a_larger_bert_can_be_trained(tmp_path):
    from larger_bert.train import LargerBERTTrainer
    from mini_bert.data import MLMDataGenerator

    model = LargerBERT(load_preset("debug"))                     # at the smallest size
    trainer = LargerBERTTrainer(model)
    (tmp_path / "sample.txt").write_text("the cat sat on the mat\n\na dog ran\n" * 20)
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat"])
    data_generator = MLMDataGenerator(data_path=str(tmp_path / "sample.txt"), tokenizer=tokenizer,
                                      max_seq_length=16, batch_size=4)
    before = model.params.flat.copy()
    state = trainer.train(data_generator, num_steps=10)
    assert state.step == 10
    assert not np.array_equal(model.params.flat, before)
