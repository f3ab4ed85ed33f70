"""Every step says why it is there and where it is derived, in the file of its operation."""

from pathlib import Path

import pytest

from mini_bert import MiniBERT, ModelConfig, load_preset, preset_names

MATH = Path(__file__).parents[2] / "docs" / "math"


@pytest.mark.parametrize("name", preset_names())
def test_every_step_of_a_shipped_architecture_has_a_reason_and_a_derivation(name):
    config = load_preset(name).to_dict()
    small = {"vocab_size": 40, "num_layers": min(3, config["num_layers"])}
    model = MiniBERT(ModelConfig.from_dict({**config, **small}), seed=None)
    for step in model.modules.steps():
        assert step.reason.endswith("."), f"{step.name}: {step.formula.name} does not say why"
        assert (MATH / f"{step.formula.page}.md").is_file(), f"{step.name}: {step.formula.name} names no derivation"
