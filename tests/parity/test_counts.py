"""The counts of docs/comparisons/architectures.md beside those of transformers, for models of the published sizes."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

SCRIPT = Path(__file__).parents[2] / "docs" / "comparisons" / "count_parameters.py"
SPEC = importlib.util.spec_from_file_location("count_parameters", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
PAGE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PAGE)

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
DEBERTA = {"relative_attention": True, "pos_att_type": "c2p|p2c", "position_biased_input": False, "type_vocab_size": 0}
THEIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT-base": ("Bert", BASE), "BERT-large": ("Bert", LARGE),
    "RoBERTa-base": ("Roberta", ROBERTA | BASE), "RoBERTa-large": ("Roberta", ROBERTA | LARGE),
    "ALBERT-base": ("Albert", BASE), "DistilBERT": ("DistilBert", {}), "ELECTRA-small": ("Electra", {}),
    "ELECTRA-base": ("Electra", {**BASE, "embedding_size": 768}),
    "ELECTRA-large": ("Electra", {**LARGE, "embedding_size": 1024}),
    "DeBERTa-base": ("Deberta", DEBERTA | BASE), "DeBERTa-large": ("Deberta", DEBERTA | LARGE),
    "DeBERTa-v3-xs": ("DebertaV2", {**DEBERTA, **BASE, "hidden_size": 384, "num_attention_heads": 6,
                                    "intermediate_size": 1536, "vocab_size": 128100, "position_buckets": 256,
                                    "norm_rel_ebd": "layer_norm", "share_att_key": True}),
    "ModernBERT": ("ModernBert", {}), "GPT-2": ("GPT2", {}),
    "XLNet-base": ("XLNet", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}),
    "GPT-3": ("GPT2", {"n_layer": 96, "n_head": 96, "n_embd": 12_288, "n_positions": 2048})}


def test_every_model_that_transformers_has_is_compared():
    assert set(PAGE.MODELS | PAGE.LARGE) - set(THEIRS) == {"Mini-BERT", "Larger-BERT", "Transformer-XL"}


@pytest.mark.parametrize("model", THEIRS)
def test_a_model_of_the_page_has_as_many_parameters_as_theirs(model):
    family, settings = THEIRS[model]
    with torch.device("meta"):
        theirs = getattr(transformers, f"{family}Model")(getattr(transformers, f"{family}Config")(**settings))
    assert PAGE.count(model).total == sum(parameter.numel() for parameter in theirs.parameters())
