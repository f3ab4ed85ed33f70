"""Gradient norms by layer and component, on models where it is known at which layer the gradient vanishes."""

import numpy as np
import pytest
from hand_built_models import WITH_HEAD, build, small, tokenizer

from mini_bert import InputError, MiniBERTGradients
from mini_bert.analysis.dynamics.gradient_flow import (
    COMPONENTS,
    analyze_gradient_flow,
    analyze_gradient_magnitudes_by_layer,
    gradient_flow,
    parameter_components,
)
from mini_bert.analysis.passes.backward_steps import backward_pass
from mini_bert.analysis.passes.forward_steps import forward_pass

IDS = np.array([2, 9, 11, 4, 3])


def flow_of(model):
    return gradient_flow(backward_pass(forward_pass(model, IDS), {3: 7}))


@pytest.mark.parametrize("name", WITH_HEAD)
def test_the_components_add_up_to_the_whole_gradient(name):
    model = build(WITH_HEAD[name])
    backward = backward_pass(forward_pass(model, IDS), {3: 7})
    flow = gradient_flow(backward)
    assert set(parameter_components(model)) == set(model.params)
    assert flow.total == pytest.approx(np.linalg.norm(backward.gradients.flat))
    assert sum(flow.share.values()) == pytest.approx(1)
    assert set(flow.by_component) == set(COMPONENTS)
    attention = [backward.gradients[name] for name, spec in model.params.specs.items()
                 if (spec.component, spec.layer) == ("attention", 0)]
    assert flow.by_layer["layer_0"]["attention"] == pytest.approx(np.sqrt(sum((array**2).sum() for array in attention)))
    assert flow.layers[1].at_output == pytest.approx(np.linalg.norm(backward["dhidden_1"].array))
    assert flow.layers[1].at_input == flow.layers[0].at_output
    assert flow.layers[0].gain == pytest.approx(flow.values["embeddings"] / flow.values["hidden_0"])


def test_a_nearly_constant_layer_makes_the_gradient_vanish():
    model = small()
    assert [layer.verdict for layer in flow_of(model).layers] == ["steady", "steady"]
    model.params["ln2_gamma_0"][...] = 1e-7               # the output of layer 0 is almost constant
    assert [layer.verdict for layer in flow_of(model).layers] == ["vanishing", "steady"]
    model.params["ln2_gamma_0"][...] = 0
    flow = flow_of(model)
    assert [layer.verdict for layer in flow.layers] == ["none", "steady"]
    assert flow.by_component["embeddings"] == 0


def test_a_layernorm_of_tiny_inputs_makes_the_gradient_explode():
    model = small(block="pre_ln")
    model.params["token_embeddings"][...] *= 1e-6         # LayerNorm divides by a tiny standard deviation
    model.params["position_embeddings"][...] *= 1e-6
    assert flow_of(model).layers[0].verdict == "exploding"


def test_an_unused_path_has_no_gradient():
    model = small()
    model.params["W2_1"][...] = 0
    layer = flow_of(model).layers[1]
    assert layer.through_feedforward == 0
    assert layer.past_feedforward > 0


def test_gradient_magnitudes_by_layer():
    model = small()
    grads = MiniBERTGradients(model)
    grads.gradients["W_Q_1"][0, :2] = [3, -4]
    grads.gradients["mlm_head_b"][0] = 2
    found = analyze_gradient_magnitudes_by_layer(grads.gradients)
    assert list(found) == ["layer_0", "layer_1", "other"]
    assert found["layer_0"] == {"norm": 0, "mean": 0, "largest": 0}
    assert (found["layer_1"]["norm"], found["layer_1"]["largest"]) == (5, 4)
    assert found["other"]["norm"] == 2
    assert analyze_gradient_magnitudes_by_layer({"a_10": np.ones(2), "a_2": np.zeros(2)})["layer_10"]["mean"] == 1
    with pytest.raises(InputError, match="named arrays"):
        analyze_gradient_magnitudes_by_layer({})


def test_the_gradient_flow_of_a_text():
    flow = analyze_gradient_flow(small(), tokenizer(), "the cat sat on a mat")
    assert flow.loss > 0
    assert next(iter(flow.values)) == "logits"
    assert flow.to_dict()["layers"][0]["layer"] == 0
