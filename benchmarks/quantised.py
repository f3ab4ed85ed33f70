"""The shipped model with narrow weights beside itself: size, memory, time and vectors.

    python benchmarks/quantised.py [--rounds 15]

Memory is that of a process of its own: what opening the model adds, and the peak while it reads a batch. Times are the
least processor time of a pass of one thread; the models take turns. Where onnx and onnxruntime are installed, the
exported model and its dynamic int8 are timed, too. The cosine is the least one of a sentence's vector with that of
float32.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mini_bert
from mini_bert.inference.embed import embed
from mini_bert.interop.onnx import onnx_bytes

SENTENCES = Path(mini_bert.__file__).parent / "pretrained" / "sentences.txt"
MEMORY = """
import json, sys
import numpy as np, mini_bert, safetensors, mini_bert.core.model, mini_bert.core.task_model
def now(what="VmRSS"): return int(next(l for l in open("/proc/self/status") if l.startswith(what)).split()[1])
before = now()
model = mini_bert.load(sys.argv[1])
opened = now()
open("/proc/self/clear_refs", "w").write("5")          # the peak begins anew
model.encode(np.arange(32 * 64).reshape(32, 64) + 5, forward_only=True)
print(json.dumps([before, opened, now("VmHWM")]))
"""


def memory(model: str) -> tuple[float, float]:
    """MB that opening the model takes, and the peak with it while a batch is read."""
    before, opened, read = json.loads(subprocess.run([sys.executable, "-c", MEMORY, model], check=True,
                                                     capture_output=True, text=True).stdout)
    return (opened - before) / 1024, (read - before) / 1024


def timed(passes: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The least processor time of each in milliseconds; they take turns."""
    least = dict.fromkeys(passes, float("inf"))
    for _ in range(rounds):
        for name, run in passes.items():
            start = time.process_time()
            run()
            least[name] = min(least[name], 1e3 * (time.process_time() - start))
    return least


def sessions(folder: Path) -> dict[str, Any]:
    """The export in onnxruntime, as it is and in dynamic int8; none where the packages are missing."""
    try:
        runtime, quantization = import_module("onnxruntime"), import_module("onnxruntime.quantization")
        (folder / "model.onnx").write_bytes(onnx_bytes(mini_bert.load("mini"), "hidden"))
    except (ImportError, mini_bert.MiniBertError):
        return {}
    quantization.quantize_dynamic(folder / "model.onnx", folder / "int8.onnx", per_channel=True,
                                  weight_type=quantization.QuantType.QInt8)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return {f"onnxruntime, {name}": runtime.InferenceSession(str(folder / file), options)
            for name, file in (("float32", "model.onnx"), ("dynamic int8", "int8.onnx"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    texts = SENTENCES.read_text().splitlines()
    with TemporaryDirectory() as made, threadpool_limits(1, "blas"):
        folder, names = Path(made), ["float32", "int8", "bf16", "fp16"]
        model, tokenizer = mini_bert.load("mini"), mini_bert.load_tokenizer("mini")
        model.save(folder / "float32")
        for word in names[1:]:
            mini_bert.quantise(model, tokenizer, folder / word, to=word)
        opened = {name: mini_bert.load(folder / name) for name in names}
        others = sessions(folder)
        rng, times = np.random.default_rng(0), {}
        for shape in ((1, 16), (32, 64)):
            ids, mask = rng.integers(5, 8192, shape), np.ones(shape, np.int64)
            passes: dict[str, Callable[[], Any]] = {
                name: lambda found=found, ids=ids: found.encode(ids, forward_only=True)
                for name, found in opened.items()}
            passes |= {name: lambda session=session, ids=ids, mask=mask: session.run(
                None, {"input_ids": ids, "attention_mask": mask}) for name, session in others.items()}
            times[shape] = timed(passes, rounds if shape[0] > 1 else 10 * rounds)
        exact = embed(model, tokenizer, texts)
        print("| weights | file MB | times smaller | opening MB | reading 32 x 64 MB | 1 x 16 ms | 32 x 64 ms "
              "| cosine |")
        print("|---|---|---|---|---|---|---|---|")
        whole = (folder / "float32" / "model.safetensors").stat().st_size
        for name in [*names, *others]:
            row = [name] + ["" for _ in range(4)]
            if name in opened:
                size = (folder / name / "model.safetensors").stat().st_size
                row[1:] = [f"{size / 1e6:.2f}", f"{whole / size:.2f}",
                           *(f"{value:.1f}" for value in memory(str(folder / name)))]
            cosine = f"{(embed(opened[name], tokenizer, texts) * exact).sum(axis=1).min():.5f}" \
                if name in opened else ""
            print("| " + " | ".join([*row, *(f"{times[shape][name]:.2f}" for shape in times), cosine]) + " |")


if __name__ == "__main__":
    main()
