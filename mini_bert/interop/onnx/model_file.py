"""A whole model as a file of ONNX, and the proof that it computes the same.

Inputs are whole numbers (batch, length): input_ids, attention_mask and, where the model reads them, token_type_ids.
The outputs, called as transformers calls them:

    hidden     last_hidden_state (batch, length, H)
    logits     logits of the MLM head or of a task's, or start_logits and end_logits of a span
    pooled     pooler_output (batch, H)
    vectors    sentence_embedding (batch, H): the mean over the real tokens, of length 1, as `mini-bert embed` has it
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from ...core.arrays import Array, BoolArray, IntArray
from ...core.inputs import has_last_position
from ...core.model import MiniBERT
from ...core.modules.heads.tasks import Answers
from ...core.task_model import TaskModel
from ...errors import ConfigError, MiniBertError, NumericalError
from .emitters import emit
from .graph import Graph, Value
from .heads import TOKENS, Outputs, mean_of

TOLERANCE = 1e-4
_SHAPES = ((1, 1), (1, 7), (2, 16), (3, 33), (2, 64))         # batch and length that an export is compared at


# ---------------------------------------------------------------- the outputs: in the graph, and by the model itself


def _hidden(graph: Graph, hidden: Value) -> Outputs:
    return {"last_hidden_state": (hidden, (*TOKENS, graph.config.hidden_size))}


def _logits(graph: Graph, hidden: Value) -> Outputs:
    model = graph.model
    found: Outputs = emit(model.task if isinstance(model, TaskModel) else model.modules.mlm_head, graph, hidden)
    return found


def _pooled(graph: Graph, hidden: Value) -> Outputs:
    if not graph.model.modules.pools:
        raise ConfigError("This model has no pooler; take the output hidden, or vectors.")
    return {"pooler_output": (emit(graph.model.modules.pooler, graph, hidden.take(np.int64(0), axis=1)),
                              ("batch", graph.config.hidden_size))}


def _vectors(graph: Graph, hidden: Value) -> Outputs:
    mean = mean_of(graph, hidden, graph.mask)
    norm = graph.node("Max", graph.node("ReduceL2", mean, axes=[1], keepdims=1), 1e-12)
    return {"sentence_embedding": (mean / norm, ("batch", graph.config.hidden_size))}


def _our_logits(model: MiniBERT, ids: IntArray, mask: BoolArray, types: IntArray | None) -> list[Array]:
    found = model.forward(ids, mask, token_types=types, forward_only=True)[0]
    return list(found) if isinstance(model, TaskModel) and model.task.answers is Answers.SPAN else [found]


def _our_hidden(model: MiniBERT, ids: IntArray, mask: BoolArray, types: IntArray | None) -> list[Array]:
    return [model.encode(ids, mask, token_types=types, forward_only=True)[0]]


def _our_pooled(model: MiniBERT, ids: IntArray, mask: BoolArray, types: IntArray | None) -> list[Array]:
    return [model.pool(_our_hidden(model, ids, mask, types)[0], mask)[0]]


def _our_vectors(model: MiniBERT, ids: IntArray, mask: BoolArray, types: IntArray | None) -> list[Array]:
    mean = (_our_hidden(model, ids, mask, types)[0] * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    return [mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)]


OUTPUTS: dict[str, tuple[Callable[[Graph, Value], Outputs], Callable[..., list[Array]]]] = {
    "hidden": (_hidden, _our_hidden), "logits": (_logits, _our_logits), "pooled": (_pooled, _our_pooled),
    "vectors": (_vectors, _our_vectors)}


def usual_output(model: MiniBERT) -> str:
    """Logits where the model has a head; else hidden states."""
    return "logits" if isinstance(model, TaskModel) or model.modules.has_logits else "hidden"


def onnx_bytes(model: MiniBERT, output: str | None = None) -> bytes:
    """The file of a model with one of the OUTPUTS, in float32; not compared yet."""
    word = usual_output(model) if output is None else output
    if word not in OUTPUTS:
        raise ConfigError(f"There is no output {word[:100]!r} of ONNX; the outputs are {', '.join(OUTPUTS)}.")
    graph = Graph(model)
    hidden = emit(model.modules.stack, graph, emit(model.modules.embed, graph))
    if model.modules.final_ln is not None:
        hidden = emit(model.modules.final_ln, graph, hidden)
    return graph.serialised(OUTPUTS[word][0](graph, hidden))


# ---------------------------------------------------------------- beside onnxruntime


def compare(model: MiniBERT, content: bytes, output: str | None = None) -> float:
    """The largest difference between onnxruntime's outputs and ours, at five shapes, with padding at either end.

    Outputs are compared at real tokens; a difference is relative to the largest number where that is above 1. An
    export that differs by more than 1e-4 is refused.
    """
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        raise ConfigError("An export is compared with the model by onnxruntime, which is not installed; install it "
                          "with: pip install 'mini-bert[onnx]'") from None
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    try:
        return _worst(model, runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"]), output)
    except MiniBertError:
        raise
    except Exception as error:                            # whatever kinds the runtime has
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(f"onnxruntime cannot run this export, so nothing is written: {reason}") from None


def _worst(model: MiniBERT, session: Any, output: str | None) -> float:
    ours = OUTPUTS[usual_output(model) if output is None else output][1]
    taken = {given.name for given in session.get_inputs()}
    worst = 0.0
    for ids, mask, types in _batches(model):
        given = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": types}
        theirs = session.run(None, {name: value for name, value in given.items() if name in taken})
        for found, expected in zip(theirs, ours(model, ids, mask, types), strict=True):
            real = np.s_[:] if expected.shape[:2] != mask.shape else mask
            scale = max(1.0, float(np.abs(expected[real]).max()))
            worst = max(worst, float(np.abs(found[real] - expected[real]).max()) / scale)
    if not worst <= TOLERANCE:
        raise NumericalError(f"onnxruntime's outputs differ by {worst:.1e} from the model's, so nothing is written.")
    return worst


def _batches(model: MiniBERT) -> Iterator[tuple[IntArray, BoolArray, IntArray | None]]:
    config, rng = model.config, np.random.default_rng(0)
    longest = config.max_seq_length if has_last_position(config) else max(T for _, T in _SHAPES)
    padding = next((found for part in (getattr(model, "task", None), getattr(model.modules.embed, "positions", None))
                    if (found := getattr(part, "padding", -1)) >= 0), 0)
    for number, (B, wanted) in enumerate(_SHAPES):
        T = min(wanted, longest)
        counts = np.maximum(1, T - np.arange(B) * 3)
        mask = np.arange(T) < counts[:, None]
        mask = mask[:, ::-1].copy() if number % 2 else mask
        ids = rng.integers(0, config.vocab_size, (B, T))
        ids[mask & (ids == padding)] = (padding + 1) % config.vocab_size
        ids[~mask] = padding
        types = rng.integers(0, config.token_types, (B, T)) if config.token_types else None
        yield ids, mask, types


def shown_inputs(content: bytes) -> dict[str, Any]:
    """The names of a file's inputs and outputs, with the names or sizes of their axes."""
    from .graph import onnx

    graph = onnx().load_model_from_string(content).graph

    def axes(value: Any) -> list[Any]:
        return [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]

    return {"inputs": {value.name: axes(value) for value in graph.input},
            "outputs": {value.name: axes(value) for value in graph.output}}
