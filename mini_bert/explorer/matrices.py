"""Arrays on their way to the page: float32 in base64, with the labels of each axis.

An axis as long as a large vocabulary is cut to the words that matter for the sentence, and the answer says so.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.passes.backward_steps import BackwardStep
from ..analysis.passes.forward_steps import Step
from .session import Passes

# what an axis is called on the page
_KINDS = {"vocabulary": "word", "positions": "position", "heads": "head", "segments": "segment", "": "dimension"}
_ALL_WORDS = 256              # a vocabulary up to this size is shown whole


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as the page reads it."""
    data = np.ascontiguousarray(array, np.dtype("<f4"))
    return {"shape": list(array.shape), "data": b64encode(data.tobytes()).decode("ascii")}


def forward_matrix(passes: Passes, step: Step) -> dict[str, Any]:
    return _matrix(passes, step.axes, step.array, None, signed=step.signed)


def backward_matrix(passes: Passes, step: BackwardStep) -> dict[str, Any]:
    return _matrix(passes, step.axes, step.array, step.rows)


def parameter_matrix(passes: Passes, name: str) -> dict[str, Any]:
    """A parameter; of an embedding table the rows that the sentence uses."""
    array, axes = passes.model.params[name], passes.model.params.axes_of(name)
    read = {"vocabulary": np.unique(passes.sentence.ids), "positions": np.arange(len(passes.sentence.ids))}
    rows = read.get(axes[0]) if array.ndim > 1 else None
    return _matrix(passes, axes, array if rows is None else array[rows], rows)


def _matrix(passes: Passes, names: Sequence[str], array: npt.NDArray[Any], rows: npt.NDArray[np.int64] | None, *,
            signed: bool = True) -> dict[str, Any]:
    axes: list[dict[str, Any]] = [{"kind": kind} for kind in axis_kinds(names)]
    vocabulary = passes.tokenizer.vocabulary
    word_axis = names.index("vocabulary") if "vocabulary" in names else None
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


def axis_kinds(names: Sequence[str]) -> list[str]:
    """What each axis counts, as the page calls it."""
    return [_KINDS.get(name, name) for name in names]


def statistics(array: npt.NDArray[Any]) -> dict[str, float]:
    """Enough to tell a step's numbers at a glance."""
    finite = array[np.isfinite(array)]
    if not finite.size:
        return {"min": 0.0, "max": 0.0, "mean": 0.0}
    return {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean(dtype=np.float64))}


def stacked(arrays: Sequence[npt.NDArray[Any]]) -> dict[str, Any]:
    return packed(np.stack(arrays))
