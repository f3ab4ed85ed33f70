"""Makes torch_save/zip.bin and torch_save/stream.bin, with PyTorch; run in the environment of `make parity`.

Views, shared storages, parameters and every kind of number, as torch.save writes them since 1.6 and as before. What
they hold is in tests/core/test_pytorch_files.py.
"""

from collections import OrderedDict
from pathlib import Path

import torch

FOLDER = Path(__file__).parent / "torch_save"


def main() -> None:
    table = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    state = OrderedDict(
        table=table, tied=table, transposed=table.T, part=table[1:, 2:], parameter=torch.nn.Parameter(table + 0.5),
        scalar=torch.tensor(2.5, dtype=torch.float64), half=torch.tensor([1.5, -2.0], dtype=torch.float16),
        brain=torch.tensor([1.5, -2.0, 2.0**100], dtype=torch.bfloat16), empty=torch.zeros(0, 3),
        truth=torch.tensor([True, False]), byte=torch.tensor([0, 255], dtype=torch.uint8),
        **{f"int{bits}": torch.tensor([-3, 7], dtype=getattr(torch, f"int{bits}")) for bits in (8, 16, 32, 64)})
    state._metadata = OrderedDict({"": {"version": 1}})
    torch.save(state, FOLDER / "zip.bin")
    torch.save(state, FOLDER / "stream.bin", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main()
