"""mini-bert bench scaling and mini-bert plan: the time of a step by several processes, measured and predicted."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.progress import TextColumn

from ...bench.contest import BenchTask
from ...bench.machine import measured_speeds
from ...bench.plan import Cluster, Prediction, Speeds, efficiency, growing, predict
from ...bench.scaling import Scaled, measure_scaling
from ...bench.scaling_process import Link
from ...configs import load_config
from ...core.config import ModelConfig
from ...core.model import MiniBERT
from ...core.modules.assembly import Modules
from ...core.registry import plugin_paths
from ...errors import ConfigError
from ...training.config import TrainingConfig
from ...workers import available_cores
from ..output import Output, SeedOption, progress_bar, table

_NONE = Link(0.0, 0.0)
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}

Config = Annotated[str, typer.Option("--config", "-c", help="A preset or YAML file.")]


def bench_scaling_command(config: Config = "mini",
                          processes: Annotated[str, typer.Option(
                              "--processes", metavar="N,N,...", help="Numbers of processes.")] = "1,2,4",
                          threads: Annotated[int, typer.Option("--threads", min=1, help="Of each process.")] = 1,
                          batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1,
                                                                  help="Sequences per step, of all processes.")] = 32,
                          micro_batch_size: Annotated[int, typer.Option(
                              "--micro-batch-size", min=0, help="Sequences that one thread computes at a time; 0: an "
                                                                "automatic number.")] = 0,
                          steps: Annotated[int, typer.Option(min=3, help="Steps of each.")] = 15,
                          seed: SeedOption = 0, *, output: Output) -> None:
    """Time a training step by several processes on this machine, in turns, beside one process with as many threads.

    Efficiency is the time of that one process divided by the time of the several: what is lost is the exchange of
    gradients and weights. The predicted time is that of `mini-bert plan`, from what this machine was measured to do.
    More processes than cores share cores, and say nothing about speed.

    Example: mini-bert bench scaling --processes 1 --config small --batch-size 8
    """
    model = _of_words(config)
    counts = _counts(processes)
    shapes = list(dict.fromkeys(pair for n in counts for pair in ((1, n * threads), (n, threads))))
    settings = TrainingConfig(batch_size=batch_size, micro_batch_size=micro_batch_size).resolved(model)
    task = BenchTask(config, batch_size, model.max_seq_length, settings.micro_batch_size, threads, seed=seed,
                     imports=tuple(map(str, plugin_paths())))
    with progress_bar(TextColumn("rounds"), quiet=output.quiet) as bar:
        shown = bar.add_task("measuring", total=1)
        found = measure_scaling(task, shapes, steps, lambda done, total: bar.update(shown, completed=done, total=total))
    speeds = {cores: measured_speeds(model, task.length, settings.micro_batch_size, cores)
              for cores in {min(n * threads, available_cores()) for n in counts}}
    by_shape = {(one.processes, one.threads): one for one in found}
    heads = ("processes", "threads", "median ms", "predicted", "of one process", "exchanged MB", "optimiser MB")
    rows = table(*heads, right=heads)
    results = []
    for n in counts:
        one = by_shape[n, threads]
        guess = _guess(model, one, speeds[min(n * threads, available_cores())], task)
        share = by_shape[1, n * threads].median / one.median
        results.append({**asdict(one), "median": one.median, "efficiency": share, "predicted": guess.seconds})
        rows.add_row(str(n), str(threads), f"{one.median * 1e3:.1f}", f"{guess.seconds * 1e3:.1f}",
                     f"{share:.0%}", f"{one.exchanged_bytes / 1e6:.1f}", f"{one.state_bytes / 1e6:.1f}")
    few = available_cores()
    note = [f"This machine has {few} cores: more than {few // threads} such processes share them."] \
        if max(counts) * threads > few else []
    output.result({"task": asdict(task), "results": results, "cores": few}, rows, "",
                  f"{config}, {batch_size} x {task.length} tokens in micro-batches of {settings.micro_batch_size}.",
                  *note)


def _guess(model: ModelConfig, one: Scaled, speeds: Speeds, task: BenchTask) -> Prediction:
    """What the model of a step says about these processes; where they share cores, all threads share the time."""
    crowded = max(1.0, one.processes * one.threads / available_cores())
    shared = Speeds(speeds.sequence_seconds * crowded, speeds.flops, speeds.number_seconds * crowded, 0.0)
    cluster = Cluster(1, one.processes, one.threads, _NONE, one.link or _NONE)
    return predict(model, MiniBERT(model, seed=None).get_parameter_count(), shared, cluster, task.batch_size,
                   task.micro_batch_size)


def plan_command(config: Config = "bert-base",
                 hosts: Annotated[int, typer.Option("--hosts", min=1, help="Machines.")] = 8,
                 cores: Annotated[int, typer.Option("--cores", min=1, help="Cores of a machine.")] = 16,
                 network: Annotated[str, typer.Option("--network", metavar="SPEED", help="Between the machines, such "
                                                      "as 1Gbit or 10Gbit.")] = "10Gbit",
                 latency: Annotated[float, typer.Option("--latency", min=0, help="Microseconds of a message.")] = 50.0,
                 processes: Annotated[int, typer.Option("--processes", min=1, help="Of each machine.")] = 1,
                 batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=0, help="Sequences per step, of all "
                                                         "machines; 0: a micro-batch for each core.")] = 0,
                 length: Annotated[int, typer.Option("--length", min=0, help="Tokens of a sequence; 0: the model's "
                                                     "most, up to 128.")] = 0,
                 tokens: Annotated[float, typer.Option("--tokens", min=1, help="Tokens to learn from.")] = 1e10,
                 price: Annotated[float, typer.Option("--price", min=0, help="Of a machine for an hour.")] = 0.0,
                 *, output: Output) -> None:
    """Predict the time, memory and cost of training on many machines, from what this one was measured to do.

    A core of theirs is taken to be as fast as one of this machine while all of its cores work, and threads of a process
    not to hinder each other. Nothing is overlapped.

    Example: mini-bert plan --config small --hosts 8 --cores 16 --network 1Gbit
    """
    model = _of_words(config)
    length = min(length or 128, model.max_seq_length)
    settings = TrainingConfig(batch_size=1 << 20, max_seq_length=length).resolved(model)
    micro = settings.micro_batch_size
    threads = max(1, cores // processes)
    batch = batch_size or micro * threads * processes * hosts
    speeds = measured_speeds(model, length, micro, available_cores())
    numbers = MiniBERT(model, seed=None).get_parameter_count()
    wire = Link(latency * 1e-6, 8 / _bits(network))
    cluster = Cluster(hosts, processes, threads, wire, Link(5e-6, 1e-9 if processes > 1 else 0.0))
    several = [(one, predict(model, numbers, speeds, one, batch, micro)) for one in growing(cluster)]
    alone = several[0][1]
    heads = ("hosts", "step s", "compute", "exchange", "optimiser", "batches", "efficiency", "GB a host", "hours",
             *(["cost"] if price else []))
    rows = table(*heads, right=heads)
    results = []
    for one, found in several:
        hours = tokens / (batch * length) * found.seconds / 3600
        share = efficiency(alone, found, (batch, batch))
        gigabytes = sum(found.memory.values()) / 1e9
        results.append({"hosts": one.hosts, **_parts(found), "efficiency": share, "hours": hours,
                        "cost": hours * one.hosts * price, "memory": found.memory, "sent_bytes": found.sent_bytes})
        rows.add_row(str(one.hosts), f"{found.seconds:,.2f}", f"{found.compute:,.2f}", f"{found.exchange:,.2f}",
                     f"{found.optimiser:,.3f}", f"{found.batches:,.2f}", f"{share:.0%}", f"{gigabytes:,.1f}",
                     f"{hours:,.0f}", *([f"{hours * one.hosts * price:,.0f}"] if price else []))
    gflops = speeds.flops / speeds.sequence_seconds / 1e9
    last = several[-1][1]
    limit = max(("compute", "exchange", "optimiser", "batches"), key=lambda part: float(getattr(last, part)))
    output.result({"config": config, "parameters": numbers, "batch_size": batch, "length": length,
                   "micro_batch_size": micro, "gflops_a_core": gflops, "results": results}, rows, "",
                  f"{config}, {numbers:,} parameters, {batch:,} x {length} tokens a step in micro-batches of {micro}, "
                  f"{tokens:.3g} tokens in all; {processes} processes of {threads} threads on each machine.",
                  f"Measured here: {gflops:.1f} GFLOP/s a core. On {hosts} machines most of a step is {limit}.")


def _parts(found: Prediction) -> dict[str, Any]:
    return {"seconds": found.seconds, "compute": found.compute, "exchange": found.exchange,
            "optimiser": found.optimiser, "batches": found.batches}


def _of_words(name: str) -> ModelConfig:
    model = load_config(name)
    if not Modules(model).predicts_words:
        raise ConfigError(f"What is timed is masked language modelling; {name} has no head for it, as its mlm_head is "
                          f"{model.mlm_head}.")
    return model


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 1024 for part in parts):
        raise ConfigError(f"--processes must be numbers such as 1,2,4, not {text[:60]!r}.")
    return list(dict.fromkeys(map(int, parts)))


def _bits(text: str) -> float:
    """The bits a second of a speed such as 10Gbit."""
    word = text.strip().lower().removesuffix("/s")
    unit = next((unit for unit in _UNITS if word.endswith(unit)), None)
    try:
        found = float(word.removesuffix(unit)) * _UNITS[unit] if unit is not None else 0.0
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ConfigError(f"--network must be a speed such as 1Gbit or 10Gbit, not {text[:60]!r}.")
    return found
