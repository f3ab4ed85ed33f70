"""The reference curve of a shipped model: held-out loss against tokens, and its band over runs with other seeds.

    cd docs/results/runs && python ../../../benchmarks/reference_curve.py mini mini-seed-1 mini-seed-2

The points are those of the first run. As far as all runs go, `mean`, `low` and `high` are over all of them
(interpolated at the same number of tokens); beyond that, `mean` is the first run's loss, and there is no band (null).
`tokens_a_step` is the mean number of tokens per step of the first run.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mini_bert.files import write_files

Curve = tuple[list[float], list[float]]


def evaluations(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's log that have a held-out loss."""
    records = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    return [record for record in records if "eval_loss" in record]


def curve_of(run: Path) -> Curve:
    """Tokens and held-out losses of a run's log."""
    points = evaluations(run)
    return [record["tokens"] for record in points], [record["eval_loss"] for record in points]


def reference_curve(runs: list[Path], about: str) -> dict[str, Any]:
    curves = [curve_of(run) for run in runs]
    tokens, losses = curves[0]
    # runs that stopped at the same step have read slightly different numbers of tokens
    until = 1.005 * min(seen[-1] for seen, _ in curves) if len(curves) > 1 else 0.0
    mean, low, high = [], [], []
    for at, loss in zip(tokens, losses, strict=True):
        if at <= until:
            here = [float(np.interp(at, *curve)) for curve in curves]
            mean, low, high = [*mean, np.mean(here)], [*low, min(here)], [*high, max(here)]
        else:
            mean, low, high = [*mean, loss], [*low, None], [*high, None]

    def rounded(values: list[Any]) -> list[float | None]:
        return [None if value is None else round(float(value), 4) for value in values]

    last = evaluations(runs[0])[-1]
    configs = [yaml.safe_load((run / "config.yaml").read_text("utf-8")) for run in runs]
    return {"about": about, "seeds": [config["training"]["seed"] for config in configs],
            "unigram_loss": round(configs[0]["about"]["unigram_loss"], 4),
            "tokens_a_step": round(last["tokens"] / last["step"], 1),
            "band_until": max((at for at in tokens if at <= until), default=0),
            "tokens": tokens, "mean": rounded(mean), "low": rounded(low), "high": rounded(high)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="directories with config.yaml and log.jsonl")
    parser.add_argument("--about", default="Held-out loss of the preset mini on 100 MB of Wikipedia and books, "
                        "with 15 % of the tokens masked.")
    parser.add_argument("--out", type=Path, help="where to write it; printed if not given")
    chosen = parser.parse_args()
    text = json.dumps(reference_curve(chosen.runs, chosen.about), indent=1) + "\n"
    if chosen.out:
        write_files(chosen.out.parent, {chosen.out.name: text.encode()})
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
