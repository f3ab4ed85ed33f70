"""mini-bert config: sizes, parameters and memory of a config."""

from math import prod
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ...core.modules.assembly import parameter_specs
from ...core.params import ParamSpec
from ...errors import ConfigError
from ...training.config import load_run_config
from ...training.memory import training_memory
from ..output import Output, table
from ..train.pretrain import Set

Name = Annotated[str, typer.Argument(metavar="PRESET|FILE", help="A preset's name or a YAML file.")]
Batch = Annotated[int, typer.Option("--batch-size", "-b", min=1, help="Sequences per training step.")]


def config_command(name: Name = "mini", batch_size: Batch = 32, changes: Set = None, *, output: Output) -> None:
    """Show a config: its sizes, the size of each parameter, and the memory that training needs.

    Example: mini-bert config larger --batch-size 8 --set model.num_layers=4
    """
    config, training = load_run_config(name, changes or [])
    specs = parameter_specs(config)
    total = sum(prod(spec.shape) for spec in specs)

    settings = table("setting", "value", right=("value",), title=f"[bold]{escape(name)}[/bold]")
    for key, value in config.to_dict().items():
        settings.add_row(key, str(value))

    where = table("parameter", "shape", "numbers", "share", right=("shape", "numbers", "share"))
    for group in _by_layer(specs):
        numbers = sum(prod(spec.shape) for spec in group)
        names = group[0].name if len(group) == 1 else f"{group[0].name} ... {group[-1].name}"
        shape = " x ".join(map(str, group[0].shape))
        where.add_row(names, shape if len(group) == 1 else f"{len(group)} of {shape}", f"{numbers:,}",
                      f"{numbers / total:.1%}")
    where.add_row("[bold]all[/bold]", "", f"[bold]{total:,}[/bold]", "100.0%")
    parameters = [{"name": spec.name, "shape": spec.shape, "numbers": prod(spec.shape)} for spec in specs]

    bytes_by_purpose: dict[str, int] | None = None
    budget: Table | str
    rate = max(training.schedule_of("masking_rate").values)          # where it changes, the step that needs most
    try:
        memory = training_memory(config, batch_size, masking_rate=rate, objective=training.objective,
                                 optimiser=training.optimiser)
    except ConfigError as error:                      # a model that can be described, and not trained so
        budget = f"The memory of training cannot be predicted: {escape(str(error))}"
    else:
        bytes_by_purpose = {"parameters": memory.parameters, "gradients": memory.gradients,
                            "optimiser": memory.optimiser, "activations": memory.activations, "total": memory.total}
        budget = table(f"training at batch {batch_size}, {rate:.0%} masked", "MB", right=("MB",))
        for purpose, size in bytes_by_purpose.items():
            budget.add_row(purpose, f"{size / 1e6:,.1f}")

    output.result(
        {"name": name, "config": config.to_dict(), "parameters": parameters, "parameter_count": total,
         "batch_size": batch_size, "masking_rate": rate, "training_bytes": bytes_by_purpose},
        settings, "", where, "", budget)


def _by_layer(specs: list[ParamSpec]) -> list[list[ParamSpec]]:
    """Groups the same parameter of all layers: W_Q_0, W_Q_1, W_Q_2."""
    groups: dict[str, list[ParamSpec]] = {}
    for spec in specs:
        stem = spec.name if spec.layer is None else spec.name.removesuffix(f"_{spec.layer}")
        groups.setdefault(stem, []).append(spec)
    return list(groups.values())
