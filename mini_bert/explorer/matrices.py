"""Arrays on their way to the page: float32 in base64, with what stands along each axis.

An axis as long as a large vocabulary is cut to the words that matter for the sentence; the page is told so.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.passes.backward_steps import BackwardStep
from ..analysis.passes.forward_steps import Step
from .session import Passes

_WORD_AXIS = {"logits": 1, "mlm_head_W": 1, "mlm_head_b": 0, "token_embeddings": 0}
_ALL_WORDS = 256              # a vocabulary up to this size is shown whole


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as the page reads it."""
    data = np.ascontiguousarray(array, np.dtype("<f4"))
    return {"shape": list(array.shape), "data": b64encode(data.tobytes()).decode("ascii")}


def forward_matrix(passes: Passes, step: Step) -> dict[str, Any]:
    return _matrix(passes, step.name, step.array, None, signed=step.kind != "softmax")


def backward_matrix(passes: Passes, step: BackwardStep) -> dict[str, Any]:
    return _matrix(passes, step.of, step.array, step.rows, is_parameter=step.is_parameter)


def parameter_matrix(passes: Passes, name: str) -> dict[str, Any]:
    """A parameter; of an embedding table the rows that the sentence uses."""
    array = passes.model.params[name]
    rows = {"token_embeddings": np.unique(passes.sentence.ids),
            "position_embeddings": np.arange(len(passes.sentence.ids))}.get(name)
    return _matrix(passes, name, array if rows is None else array[rows], rows, is_parameter=True)


def _matrix(passes: Passes, name: str, array: npt.NDArray[Any], rows: npt.NDArray[np.int64] | None, *,
            is_parameter: bool = False, signed: bool = True) -> dict[str, Any]:
    axes: list[dict[str, Any]] = [{"kind": kind} for kind in axis_kinds(name, array.ndim, is_parameter)]
    vocabulary = passes.tokenizer.vocabulary
    word_axis = _WORD_AXIS.get(name)
    if word_axis is not None:
        words = rows if rows is not None else passes.words if array.shape[word_axis] > _ALL_WORDS \
            else np.arange(min(len(vocabulary), array.shape[word_axis]))
        if rows is None:
            axes[word_axis] |= {"numbers": words.tolist(), "of": array.shape[word_axis]}
            array = np.take(array, words, axis=word_axis)
        else:
            axes[word_axis] |= {"of": len(vocabulary)}
        axes[word_axis]["labels"] = [vocabulary[i] for i in words.tolist()]
    for axis in axes:
        if axis["kind"] in ("token", "key"):
            axis["labels"] = passes.sentence.tokens
    return {**packed(array), "axes": axes, "signed": signed}


def axis_kinds(name: str, ndim: int, is_parameter: bool) -> list[str]:
    """What each axis counts."""
    stem = name.rstrip("0123456789").rstrip("_")
    if name == "position_embeddings":
        return ["position", "dimension"]
    if is_parameter:
        kinds = ["dimension"] * ndim
    elif ndim == 3:
        kinds = ["head", "token", "key" if stem in ("scores", "attention_weights") else "dimension"]
    else:
        kinds = ["token", "dimension"][:ndim]
    if name in _WORD_AXIS:
        kinds[_WORD_AXIS[name]] = "word"
    return kinds


def statistics(array: npt.NDArray[Any]) -> dict[str, float]:
    """Enough to tell a step's numbers at a glance."""
    finite = array[np.isfinite(array)]
    if not finite.size:
        return {"min": 0.0, "max": 0.0, "mean": 0.0}
    return {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean(dtype=np.float64))}


def stacked(arrays: Sequence[npt.NDArray[Any]]) -> dict[str, Any]:
    return packed(np.stack(arrays))
