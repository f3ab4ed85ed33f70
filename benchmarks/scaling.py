"""How a training step's time and memory grow with each size of the model and of the batch.

    python benchmarks/scaling.py [--steps 15] [--json]

One size of `mini` at a time is changed: batch B, tokens T, features H (with I = 4 H), layers L, vocabulary V.
The exponent is the slope of log(time) or log(memory) against log(size), by least squares; memory is
counted beyond that of a process with a very small model. A sum of terms does not grow by one power, so an exponent
below the limit says that other terms still matter; the limits are 1 for B, L and V, 2 for T and 2 for H.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from mini_bert import load_preset
from mini_bert.bench.contest import BenchTask, compete
from mini_bert.core.config import ModelConfig
from mini_bert.workers import available_cores

SIZES = {"B": (8, 16, 32, 64), "T": (32, 64, 128, 256), "H": (96, 192, 384), "L": (2, 4, 8),
         "V": (4096, 8192, 16384, 32768)}


def variant(size: str, value: int) -> tuple[ModelConfig, int]:
    """Mini-BERT with one size changed, and the batch size."""
    mini, batch = load_preset("mini"), 32
    if size == "B":
        return mini, value
    if size == "T":
        return replace(mini, max_seq_length=value), batch
    if size == "H":
        return replace(mini, hidden_size=value, intermediate_size=4 * value), batch
    return replace(mini, **{"L": {"num_layers": value}, "V": {"vocab_size": value}}[size]), batch


def measure(config: ModelConfig, batch: int, steps: int, threads: int) -> tuple[float, float]:
    """Median seconds per step, and the peak memory of the process in MB."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(yaml.safe_dump(config.to_dict()))
        task = BenchTask(str(file), batch, config.max_seq_length, threads=threads)
        timing = compete(["mini-bert"], task, steps)["mini-bert"]
    return timing.median, timing.peak_bytes / 1e6


def exponent(sizes: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    threads = available_cores()
    empty = measure(load_preset("debug"), 1, 5, threads)[1]
    results: dict[str, dict[str, object]] = {}
    for size, values in SIZES.items():
        rows = []
        for value in values:
            seconds, megabytes = measure(*variant(size, value), options.steps, threads)
            rows.append({"size": value, "ms": seconds * 1e3, "peak_mb": megabytes})
            print(f"{size} = {value:>6,}   {seconds * 1e3:8.1f} ms   {megabytes:8.1f} MB", file=sys.stderr, flush=True)
        results[size] = {"rows": rows, "time_exponent": exponent(list(values), [row["ms"] for row in rows]),
                         "memory_exponent": exponent(list(values), [row["peak_mb"] - empty for row in rows])}
    if options.json:
        print(json.dumps({"threads": threads, "empty_mb": empty, "sizes": results}, indent=2))
        return
    print("| size | values | ms per step | peak MB | time grows as | memory grows as |\n|---|---|---|---|---|---|")
    for size, found in results.items():
        rows = found["rows"]
        columns = [" / ".join(f"{row[key]:,.{digits}f}" for row in rows)
                   for key, digits in (("size", 0), ("ms", 0), ("peak_mb", 0))]
        print(f"| {size} | {' | '.join(columns)} | {size}^{found['time_exponent']:.2f} "
              f"| {size}^{found['memory_exponent']:.2f} |")


if __name__ == "__main__":
    main()
