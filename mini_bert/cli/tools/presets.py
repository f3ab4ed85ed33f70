"""mini-bert presets: list the model presets."""

from math import prod

from ...configs import describe_preset, load_preset, preset_names
from ...core.modules.assembly import parameter_specs
from ..output import Output, table


def presets_command(*, output: Output) -> None:
    """List the model presets with their sizes.

    Example: mini-bert presets
    """
    rows = table("preset", "L", "H", "A", "I", "T", "V", "parameters", "",
                 right=("L", "H", "A", "I", "T", "V", "parameters"))
    data = []
    for name in preset_names():
        config = load_preset(name)
        count = sum(prod(spec.shape) for spec in parameter_specs(config))
        sizes = (config.num_layers, config.hidden_size, config.num_heads, config.intermediate_size,
                 config.max_seq_length, config.vocab_size)
        rows.add_row(name, *(str(size) for size in sizes), f"{count:,}", describe_preset(name))
        data.append({"name": name, "parameters": count, "description": describe_preset(name),
                     "config": config.to_dict()})
    output.result({"presets": data}, rows)
