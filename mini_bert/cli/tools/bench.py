"""mini-bert bench and mini-bert memory: the time and memory of a training step."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TextColumn

from ...bench.contest import BenchTask, Timing, compete, round_count
from ...configs import load_config
from ...core.config import ModelConfig
from ...core.modules.assembly import Modules
from ...core.registry import plugin_paths
from ...errors import ConfigError
from ...training.config import load_run_config
from ...training.memory import training_memory
from ...workers import available_cores
from ..output import Output, SeedOption, ThreadsOption, progress_bar, table
from .scaling import bench_scaling_command

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Measure the speed of training.")
PEERS = {"torch": ["torch", "torch.compile"], "transformers": ["transformers"],
         "all": ["torch", "torch.compile", "transformers"]}
app.command("scaling")(bench_scaling_command)
Config = Annotated[str, typer.Option("--config", "-c", help="A preset or YAML file.")]
Batch = Annotated[int, typer.Option("--batch-size", "-b", min=1, help="Sequences per step.")]
Micro = Annotated[int, typer.Option("--micro-batch-size", min=0, help="Sequences that one thread computes at a time; "
                                    "0 for the preset's value, or an automatic one.")]


@app.command("train")
def bench_train_command(config: Config = "mini", batch_size: Batch = 32, micro_batch_size: Micro = 0,
                        against: Annotated[str | None, typer.Option(
                            help="Compare with torch, transformers or all, if they are installed.")] = None,
                        steps: Annotated[int, typer.Option(min=5, help="Steps of each contestant.")] = 30,
                        threads: ThreadsOption = 0,
                        seed: SeedOption = 0, *, output: Output) -> None:
    """Time full training steps: forward, backward, clipping and AdamW. Other libraries take turns in the same run.

    The floor is the time of the step's matrix products alone, on the same threads.

    Example: mini-bert bench train --config small --batch-size 8
    """
    if against is not None and against not in PEERS:
        raise typer.BadParameter(f"choose one of {', '.join(PEERS)}.", param_hint="--against")
    model = load_config(config)
    _require_words(config, model)
    task = BenchTask(config, batch_size, model.max_seq_length, micro_batch_size, threads or available_cores(),
                     seed=seed, imports=_imports())
    names = ["mini-bert", "floor", *(PEERS[against] if against else [])]
    with progress_bar(TextColumn("rounds"), quiet=output.quiet) as bar:
        shown = bar.add_task("measuring", total=round_count(steps))
        timings = compete(names, task, steps, lambda done, total: bar.update(shown, completed=done, total=total))
    data = _results(task, timings)
    rows = table("contestant", "median ms", "minimum ms", "of our median", "peak MB",
                 right=("median ms", "minimum ms", "of our median", "peak MB"))
    ours = timings["mini-bert"]
    for name, timing in timings.items():
        rows.add_row(name, f"{timing.median * 1e3:.1f}", f"{timing.minimum * 1e3:.1f}",
                     f"{timing.median / ours.median:.2f}x", f"{timing.peak_bytes / 1e6:,.0f}")
    lines = [f"{config}, {batch_size} x {model.max_seq_length} tokens, {task.threads} threads: "
             f"{data['tokens_per_second']:,.0f} tokens/s, {data['share_of_floor']:.0%} of the floor."]
    if "best_peer" in data:
        lines.append(f"[bold]{data['speedup_median']:.2f}x[/bold] the best peer, {data['best_peer']}, by medians; "
                     f"{data['speedup_minimum']:.2f}x by minima.")
    output.result(data, rows, "", *lines)


@app.command("profile")
def bench_profile_command(config: Config = "mini", batch_size: Batch = 32, micro_batch_size: Micro = 0,
                          length: Annotated[int, typer.Option(min=0, help="Tokens of a sequence; 0 for the model's "
                                                              "max_seq_length.")] = 0,
                          steps: Annotated[int, typer.Option(min=1, help="Steps to measure.")] = 5,
                          picture: Annotated[Path | None, typer.Option(
                              "--picture", help="Draw the table as a .png, .svg or .pdf file.")] = None,
                          seed: SeedOption = 0, *, output: Output) -> None:
    """Show where the time and the memory of a training step go, operation by operation.

    One thread computes the step, in the micro-batches of all cores. The floor is the time of the step's matrix products
    alone.

    Example: mini-bert bench profile --config mini-modern --batch-size 16
    """
    from ...bench.profile import profile

    model = load_config(config)
    _require_words(config, model)
    found = profile(BenchTask(config, batch_size, length or model.max_seq_length, micro_batch_size, available_cores(),
                              seed=seed, imports=_imports()), steps)
    rows = table("operation", "calls", "ms", "of the step", "peak MB", right=("calls", "ms", "of the step", "peak MB"))
    for row in found.rows:
        rows.add_row(row.name, f"{row.calls:,}", f"{row.seconds * 1e3:.2f}", f"{row.seconds / found.watched:.1%}",
                     f"{row.peak_bytes / 1e6:.1f}")
    data = {"rows": [asdict(row) for row in found.rows], "seconds": found.seconds, "watched_seconds": found.watched,
            "floor_seconds": found.floor, "share_of_floor": found.floor / found.seconds}
    if picture is not None:
        from ...plots.profile import plot_profile

        plot_profile({row.name: row.seconds for row in found.rows}, found.floor).save(picture)
    output.result(data, rows, "", f"A step of {config}, {batch_size} x {length or model.max_seq_length} tokens: "
                  f"{found.seconds * 1e3:.1f} ms of one thread ({found.watched * 1e3:.1f} ms while profiled).",
                  f"Its matrix products alone: {found.floor * 1e3:.1f} ms, {found.floor / found.seconds:.0%} of it.")


def _require_words(name: str, model: ModelConfig) -> None:
    if not Modules(model).predicts_words:
        raise ConfigError(f"This benchmark measures masked language modelling; {name} has no head for it, as "
                          f"its mlm_head is {model.mlm_head}.")


def _imports() -> tuple[str, ...]:
    """The files that the other processes must import too."""
    return tuple(map(str, plugin_paths()))


def _results(task: BenchTask, timings: dict[str, Timing]) -> dict[str, Any]:
    ours, floor = timings["mini-bert"], timings["floor"]
    data: dict[str, Any] = {
        "task": asdict(task), "tokens_per_second": task.batch_size * task.length / ours.median,
        "share_of_floor": floor.median / ours.median, "share_of_floor_minimum": floor.minimum / ours.minimum,
        "contestants": {name: {"median": t.median, "minimum": t.minimum, "steps": len(t.seconds),
                               "peak_bytes": t.peak_bytes, "loss": t.loss} for name, t in timings.items()}}
    peers = {name: t for name, t in timings.items() if name.startswith("torch")} \
        or {name: t for name, t in timings.items() if name not in ("mini-bert", "floor")}
    if peers:
        best = min(peers, key=lambda name: peers[name].median)
        data |= {"best_peer": best, "speedup_median": peers[best].median / ours.median,
                 "speedup_minimum": min(t.minimum for t in peers.values()) / ours.minimum}
    if "transformers" in timings:
        data["speedup_over_transformers"] = timings["transformers"].median / ours.median
    return data


# settings of training that save memory
_SAVINGS: dict[str, dict[str, Any]] = {
    "measured": {},
    "measured, checkpointing": {"gradient_checkpointing": True},
    "measured, moments as bfloat16": {"moments": "bfloat16"},
    "measured, moments and activations as bfloat16": {"moments": "bfloat16", "activations": "bfloat16"},
    "measured, moments as bfloat16, checkpointing": {"moments": "bfloat16", "gradient_checkpointing": True},
}


def memory_command(config: Annotated[str, typer.Argument(metavar="PRESET|FILE")] = "mini", batch_size: Batch = 32,
                   micro_batch_size: Micro = 0, seed: SeedOption = 0, *, output: Output) -> None:
    """Predict the memory of training by purpose, and measure it in a separate process.

    It is measured as it is, with gradient checkpointing, and with moments and activations stored as bfloat16.

    Example: mini-bert memory mini --batch-size 32
    """
    model, training = load_run_config(config)
    _require_words(config, model)
    threads = available_cores()
    training = replace(training, batch_size=batch_size, threads=threads,
                       micro_batch_size=micro_batch_size or training.micro_batch_size).resolved(model)
    micro_batch_size = training.micro_batch_size
    at_once = min(threads * micro_batch_size, batch_size)
    predicted = training_memory(model, at_once, objective=training.objective, optimiser=training.optimiser)
    measured = {}
    for name, settings in _SAVINGS.items():
        task = BenchTask(config, batch_size, model.max_seq_length, micro_batch_size, threads, settings, seed,
                         _imports())
        measured[name] = compete(["mini-bert"], task, steps=5)["mini-bert"].peak_bytes
    rows = table(f"{config} at batch {batch_size}, {at_once} sequences at once", "MB", right=("MB",))
    parts = {"parameters": predicted.parameters, "gradients": predicted.gradients, "optimiser": predicted.optimiser,
             "activations": predicted.activations}
    for name, size in {**parts, "predicted": predicted.total, **measured}.items():
        rows.add_row(name, f"{size / 1e6:,.1f}")
    output.result({"config": config, "batch_size": batch_size, "predicted": parts,
                   "predicted_total": predicted.total, "measured": measured["measured"],
                   "measured_checkpointing": measured["measured, checkpointing"],
                   "measured_bfloat16_moments": measured["measured, moments as bfloat16"],
                   "measured_bfloat16": measured["measured, moments and activations as bfloat16"],
                   "measured_bfloat16_moments_checkpointing": measured["measured, moments as bfloat16, checkpointing"]},
                  rows, "", "Measured: the peak of the process, with the interpreter and libraries.")
