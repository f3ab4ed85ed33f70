"""Files of vectors, written block by block as the vectors are computed: .npy, JSON lines, and Parquet.

    .npy       the vectors alone, a row for each text; similar and serve search it: see collection.py
    .jsonl     {"text": ..., "vector": [...]} on a line for each text
    .parquet   the columns text and vector, by pyarrow (the extra `parquet`)
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError

Vectors = npt.NDArray[np.float32]
Blocks = Iterable[tuple[Sequence[str], Vectors]]          # texts, in order, and their vectors
Parts = Iterator[bytes | memoryview]


def npy_parts(blocks: Blocks, count: int, width: int) -> Parts:
    """The parts of a .npy file of `count` vectors."""
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (count, width)})
    yield header.getvalue()
    for _, vectors in blocks:
        yield np.ascontiguousarray(vectors, "<f4").reshape(-1).view(np.uint8).data


def json_lines(blocks: Blocks) -> Iterator[str]:
    """The lines, without their ends; numbers have six decimals."""
    for texts, vectors in blocks:
        for text, vector in zip(texts, vectors, strict=True):
            yield json.dumps({"text": text, "vector": [round(float(x), 6) for x in vector]}, ensure_ascii=False)


def jsonl_parts(blocks: Blocks, count: int, width: int) -> Parts:
    for line in json_lines(blocks):
        yield f"{line}\n".encode("utf-8", "surrogatepass")


def parquet_parts(blocks: Blocks, count: int, width: int) -> Parts:
    """A group of rows for each block."""
    arrow, parquet = _pyarrow()
    schema = arrow.schema([("text", arrow.string()), ("vector", arrow.list_(arrow.float32(), width))])
    written: list[bytes] = []
    with parquet.ParquetWriter(arrow.PythonFile(_Sink(written), mode="w"), schema) as writer:
        for texts, vectors in blocks:
            rows = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), width)
            writer.write_table(arrow.table([arrow.array(list(texts), arrow.string()), rows], schema=schema))
            yield from written
            written.clear()
    yield from written


class _Sink:
    """A file that keeps what is written to it until it is taken."""

    closed = False

    def __init__(self, written: list[bytes]):
        self._written, self._size = written, 0

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        self._size += len(self._written[-1])
        return len(self._written[-1])

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise DataError("Parquet needs pyarrow: pip install \"mini-bert[parquet]\". Or write .npy or .jsonl.") from None


WRITERS: dict[str, Callable[[Blocks, int, int], Parts]] = {".npy": npy_parts, ".jsonl": jsonl_parts,
                                                           ".parquet": parquet_parts}


def require_writer(ending: str) -> None:
    """Refuse an ending whose library is missing, before anything is computed."""
    if ending == ".parquet":
        _pyarrow()
