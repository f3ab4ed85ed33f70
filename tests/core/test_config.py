"""Configurations: presets, coercion, and one clear sentence for each mistake."""

import pytest

from mini_bert import ConfigError, MiniBERT, ModelConfig, load_config, load_preset, preset_names
from mini_bert.core.config import SLOTS
from mini_bert.core.registry import words

COUNTS = {"mini": 4_498_880, "mini-deep": 4_942_976, "larger": 49_137_488, "bert-tiny": 4_416_698,
          "bert-base": 109_514_298, "bert-large": 335_174_458, "small": 2_509_312, "debug": 6_720,
          "roberta-base": 124_697_433, "albert-base": 11_813_810, "distilbert-base": 66_985_530,
          "electra-small": 13_549_057, "modernbert-base": 149_655_232, "gpt2": 124_439_808,
          "mini-albert": 1_426_114, "mini-electra": 3_524_161, "mini-gated": 4_501_196, "mini-gpt": 4_267_008,
          "mini-modern": 4_274_816, "mini-relative": 4_491_344, "mini-rope": 4_486_592,
          "xlnet-base": 116_750_336, "mini-xlnet": 3_027_008, "transformer-xl": 41_055_436, "mini-xl": 3_024_320,
          "deberta-base": 139_244_121, "deberta-v3-xsmall": 70_958_820, "mini-deberta": 4_511_552}


def test_the_presets_have_their_sizes():
    from math import prod

    from mini_bert.core.modules.assembly import parameter_specs

    counts = {name: sum(prod(spec.shape) for spec in parameter_specs(load_preset(name))) for name in preset_names()}
    assert counts == COUNTS


def test_the_default_is_mini():
    assert ModelConfig() == load_preset("mini") == load_preset("default")


def test_scientific_notation_in_yaml_is_a_number():
    assert load_preset("bert-tiny").layernorm_eps == 1e-12


def test_a_config_file_is_read(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("hidden_size: 96\ndropout: '0.1'\n")
    assert load_config(str(file)) == ModelConfig(hidden_size=96, dropout=0.1)
    (tmp_path / "empty.yaml").write_text("")
    assert load_config(str(tmp_path / "empty.yaml")) == ModelConfig()


@pytest.mark.parametrize(("values", "words"), [
    ({"hidden_sise": 3}, ["hidden_sise", "hidden_size"]),
    ({"num_head": 3}, ["num_head", "num_heads"]),
    ({"num_heads": 5}, ["num_heads=5", "hidden_size=192", "num_heads=4"]),
    ({"num_layers": 0}, ["num_layers", "at least 1"]),
    ({"num_layers": 10**9}, ["num_layers", "1,000"]),
    ({"hidden_size": 2_000_000_000, "num_heads": 7}, ["hidden_size", "at most"]),
    ({"activation": "geluu"}, ["activation", "geluu", "'gelu'"]),
    ({"hidden_size": [["deep"] * 9] * 9}, ["hidden_size", "whole number"]),
    ({"hidden_size": "wide"}, ["hidden_size", "whole number", "wide"]),
    ({"hidden_size": 192.5}, ["hidden_size", "whole number"]),
    ({"hidden_size": True}, ["hidden_size", "whole number"]),
    ({"hidden_size": float("inf")}, ["hidden_size", "whole number"]),
    ({"hidden_size": None}, ["hidden_size", "whole number"]),
    ({"dropout": 1.0}, ["dropout", "[0, 1)"]),
    ({"dropout": "nan"}, ["dropout"]),
    ({"layernorm_eps": 0}, ["layernorm_eps", "positive"]),
    ({"token_types": -1}, ["token_types"]),
    ({"attention_bias": "perhaps"}, ["attention_bias", "true or false"]),
    ({"activation": 3}, ["activation", "word"]),
    (["hidden_size"], ["mapping", "list"]),
])
def test_a_bad_config_is_refused_in_one_sentence(values, words):
    with pytest.raises(ConfigError) as error:
        ModelConfig.from_dict(values)
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize("slot", SLOTS)
def test_an_unknown_word_for_a_slot_names_the_choices(slot):
    with pytest.raises(ConfigError) as error:
        MiniBERT(ModelConfig.from_dict({slot: "nonsense"}))
    assert all(word in str(error.value) for word in [slot, "nonsense", *words(slot)])


def test_an_unknown_score_term_names_the_choices():
    with pytest.raises(ConfigError, match=r"score_term: 'rotarry' is not a choice; the nearest is 'rotary'"):
        ModelConfig.from_dict({"score_terms": "relative_keys(reach=3) + rotarry"})


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2\n", "just words", "hidden_sise: 3", "activation: geluu",
                                  "a: " + "[" * 5000, "hidden_size: " + "9" * 5000], ids=lambda text: text[:20])
def test_a_bad_file_is_named(tmp_path, text):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        load_config(str(file))


def test_a_missing_file_and_an_unknown_preset_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.yaml"):
        load_config(str(tmp_path / "absent.yaml"))
    with pytest.raises(ConfigError, match=r"'minni'.*'mini'"):
        load_preset("minni")


def test_a_preset_is_not_hidden_by_a_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mini").mkdir()
    assert load_config("mini") == load_preset("mini")
    (tmp_path / "mine").write_text("num_layers: 1")
    assert load_config("mine").num_layers == load_config(tmp_path / "mine").num_layers == 1
    with pytest.raises(ConfigError, match="no preset"):
        load_config("x" * 300)


def test_a_model_is_not_built_from_something_else():
    with pytest.raises(ConfigError, match="dict"):
        MiniBERT({"hidden_size": 192})
    for dtype in ("float16", "float99"):
        with pytest.raises(ConfigError, match=dtype):
            MiniBERT(ModelConfig(), dtype=dtype)
    with pytest.raises(ConfigError, match="memory"):
        MiniBERT(ModelConfig(vocab_size=10_000_000, hidden_size=100_000, num_heads=1))
