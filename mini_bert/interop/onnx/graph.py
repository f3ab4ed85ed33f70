"""A graph of ONNX nodes that is built by writing arithmetic on its values.

    graph = Graph(model)
    y = graph.param("W_Q_0") @ x * 0.5          three nodes

A Value is the output of a node, and knows no shape: the batch and the length are not known before the graph runs.
Numbers and arrays beside a Value become constants, and a parameter is stored once, however often it is read. GELU,
rotary positions and RMS normalisation are no nodes of opset 17, and are spelled out.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from ...core.model import MiniBERT
from ...errors import ConfigError
from ...version import __version__

OPSET, IR_VERSION = 17, 8
LARGEST = 2**31 - 2**20       # bytes: a protobuf message ends at 2 GiB
Operand = Union["Value", float, np.generic, npt.NDArray[Any]]
Table = TypeVar("Table")


@lru_cache(maxsize=1)
def onnx() -> Any:
    """The package onnx, which only an export needs."""
    try:
        return import_module("onnx")
    except ImportError:
        raise ConfigError("Writing ONNX needs the package onnx; install it with: pip install 'mini-bert[onnx]'"
                          ) from None


class Value:
    """The output of a node."""

    __array_ufunc__ = None                # array @ value asks the value

    def __init__(self, graph: "Graph", name: str):
        self.graph, self.name = graph, name

    def __add__(self, other: Operand) -> "Value":
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Operand) -> "Value":
        return self.graph.node("Sub", self, other)

    def __mul__(self, other: Operand) -> "Value":
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Value":
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Operand) -> "Value":
        return self.graph.node("MatMul", self, other)

    def __pow__(self, other: Operand) -> "Value":
        return self.graph.node("Pow", self, other)

    def __and__(self, other: Operand) -> "Value":
        return self.graph.node("And", self, other)

    def __or__(self, other: Operand) -> "Value":
        return self.graph.node("Or", self, other)

    def __neg__(self) -> "Value":
        return self.graph.node("Neg", self)

    def __radd__(self, other: Operand) -> "Value":
        return self.graph.node("Add", other, self)

    def __rsub__(self, other: Operand) -> "Value":
        return self.graph.node("Sub", other, self)

    def __rmul__(self, other: Operand) -> "Value":
        return self.graph.node("Mul", other, self)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self.graph.node("Div", other, self)

    def reshape(self, *shape: int) -> "Value":
        """0 keeps an axis as it is, and -1 is whatever is left."""
        return self.graph.node("Reshape", self, np.array(shape))

    def transpose(self, *axes: int) -> "Value":
        return self.graph.node("Transpose", self, perm=axes)

    def expand_dims(self, *axes: int) -> "Value":
        return self.graph.node("Unsqueeze", self, np.array(axes))

    def squeeze(self, *axes: int) -> "Value":
        return self.graph.node("Squeeze", self, np.array(axes))

    def cut(self, axis: int, start: int, stop: "int | Value") -> "Value":
        """x[start:stop] along an axis."""
        ends = stop if isinstance(stop, Value) else np.array([stop])
        return self.graph.node("Slice", self, np.array([start]), ends, np.array([axis]))

    def take(self, rows: Operand, axis: int = 0) -> "Value":
        """x[rows]"""
        return self.graph.node("Gather", self, rows, axis=axis)

    def astype(self, dtype: npt.DTypeLike) -> "Value":
        return self.graph.node("Cast", self, to=onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


class Graph:
    """The nodes of one model's pass, and its inputs: ids, mask and types, each (B, T) whole numbers."""

    def __init__(self, model: MiniBERT):
        self.model, self.config = model, model.config
        self.nodes: list[Any] = []
        self.tensors: dict[str, Any] = {}              # the parameters that are read, and the constants
        self.own = False                               # does even padding see its own token? See Context.own
        self._constants: dict[Any, str] = {}
        self._tables: dict[Any, Any] = {}
        self._inputs: list[str] = []
        self._count = 0

    # ---------------------------------------------------------------- nodes

    def node(self, kind: str, *inputs: Operand, **attributes: Any) -> Value:
        """A node of the standard operators, and its first output. Numbers beside values become constants."""
        return self.nodes_of(kind, *inputs, outputs=1, **attributes)[0]

    def nodes_of(self, kind: str, *inputs: Operand, outputs: int, **attributes: Any) -> list[Value]:
        self._count += 1
        names = [f"{kind}_{self._count}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        read = [given.name if isinstance(given, Value) else self.constant(given).name for given in inputs]
        self.nodes.append(onnx().helper.make_node(kind, read, names, name=f"{kind}_{self._count}", **attributes))
        return [Value(self, name) for name in names]

    def constant(self, value: Operand) -> Value:
        """A number, as float32, or an array."""
        if isinstance(value, Value):
            return value
        array = np.asarray(value, np.float32 if type(value) in (float, int) else None)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = self._constants[key] = f"constant_{len(self._constants)}"
            self.tensors[name] = onnx().numpy_helper.from_array(array, name)
        return Value(self, self._constants[key])

    def param(self, name: str) -> Value:
        """A parameter; of one that is tied to the transpose of another, the transpose."""
        tie = self.model.params.ties.get(name)
        if tie is not None:
            target = self.param(tie.target)
            return self.table(("transposed", tie.target), lambda: target.transpose(1, 0)) if tie.transposed else target
        if name not in self.tensors:
            array = np.ascontiguousarray(self.model.params[name], np.float32)
            self.tensors[name] = onnx().numpy_helper.from_array(array, name)
        return Value(self, name)

    def where(self, condition: Value, yes: Operand, no: Operand) -> Value:
        return self.node("Where", condition, yes, no)

    def concat(self, values: Sequence[Operand], axis: int) -> Value:
        return self.node("Concat", *values, axis=axis)

    def table(self, key: Any, compute: Callable[[], Table]) -> Table:
        """What `compute` gives, computed once for all layers that ask with the same key."""
        if key not in self._tables:
            self._tables[key] = compute()
        found: Table = self._tables[key]
        return found

    # ---------------------------------------------------------------- the pass

    def _input(self, name: str) -> Value:
        if name not in self._inputs:
            self._inputs.append(name)
        return Value(self, name)

    @property
    def ids(self) -> Value:
        return self._input("input_ids")

    @property
    def types(self) -> Value:
        return self._input("token_type_ids")

    @property
    def mask(self) -> Value:
        """(B, T), True at real tokens."""
        given = self._input("attention_mask")
        return self.table("mask", lambda: given.astype(bool))

    @property
    def length(self) -> Value:
        """T, as an array of one number."""
        ids = self.ids
        return self.table("length", lambda: self.node("Shape", ids, start=1, end=2))

    @property
    def positions(self) -> Value:
        """0 ... T-1"""
        length = self.length
        return self.table("positions", lambda: self.node("Range", np.int64(0), length.squeeze(0), np.int64(1)))

    @property
    def distances(self) -> Value:
        """key - query (T, T)"""
        positions = self.positions
        return self.table("distances", lambda: positions.expand_dims(0) - positions.expand_dims(1))

    # ---------------------------------------------------------------- the file

    def serialised(self, outputs: dict[str, tuple[Value, tuple[str | int, ...]]]) -> bytes:
        """The bytes of a model with these outputs, each with the names or sizes of its axes."""
        helper, kinds = onnx().helper, onnx().TensorProto
        size = sum(len(tensor.raw_data) for tensor in self.tensors.values())
        if size > LARGEST:
            raise ConfigError(f"The parameters have {size:,} bytes, and a file of ONNX has at most {LARGEST:,}.")
        for name, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        for name in ("input_ids", "attention_mask"):   # every model of the family takes the two
            self._input(name)
        order = ("input_ids", "attention_mask", "token_type_ids")
        made = helper.make_graph(
            self.nodes, "mini_bert",
            [helper.make_tensor_value_info(name, kinds.INT64, ["batch", "length"])
             for name in sorted(self._inputs, key=order.index)],
            [helper.make_tensor_value_info(name, kinds.FLOAT, list(axes)) for name, (_, axes) in outputs.items()],
            list(self.tensors.values()))
        model = helper.make_model(made, producer_name="mini-bert", producer_version=__version__, ir_version=IR_VERSION,
                                  opset_imports=[helper.make_opsetid("", OPSET)])
        onnx().checker.check_model(model, full_check=True)
        serialised: bytes = model.SerializeToString()
        return serialised
