"""--config: take the options of a command from a YAML file. Options on the command line win, those of --set one by
one."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ..configs import load_options
from ..errors import ConfigError


def _use(context: typer.Context, name: str | None) -> str | None:
    """Make the values of the file the defaults of the command, which converts and checks them like any other value."""
    if name is not None:
        parameters = {_key(parameter): parameter for parameter in context.command.params}
        known = [key for key in parameters if key not in ("config", "help")]
        defaults = {}
        for key, value in load_options(name).items():
            if str(key).replace("-", "_") not in known:
                raise ConfigError(f"{name} has the key {str(key)[:100]!r}, which is not an option of "
                                  f"{context.info_name}; the options are {', '.join(known)}.")
            parameter = parameters[str(key).replace("-", "_")]
            defaults[str(parameter.name)] = _value(value, getattr(parameter, "multiple", False))
        context.default_map = defaults
    return name


def with_settings_of_file(context: typer.Context, parameter: typer.CallbackParam,
                          given: list[str] | None) -> list[str] | None:
    """The callback of --set: its settings come behind those of the file, so that they win one by one."""
    in_file = (context.default_map or {}).get(str(parameter.name))
    source = context.get_parameter_source(str(parameter.name))
    if in_file is None or source is None or source.name != "COMMANDLINE":
        return given
    return [*in_file, *(given or ())]


def _key(parameter: Any) -> str:
    """The key of a parameter: the long name of its option without the dashes, or the name of an argument."""
    names: list[str] = [name for name in parameter.opts if name.startswith("--")] or [parameter.name]
    return names[0].removeprefix("--").replace("-", "_")


def _value(value: Any, multiple: bool) -> Any:
    """A list is a repeated option, or the comma-separated value of a single one; a mapping is a list of KEY=VALUE."""
    if isinstance(value, Mapping):
        value = [f"{key}={item}" for key, item in value.items()]
    if multiple:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value


ConfigOption = Annotated[str | None, typer.Option(
    "--config", metavar="NAME|FILE", callback=_use, is_eager=True, expose_value=False,
    help="Take options from a YAML file, or from a shipped one: intrinsic or downstream (evaluate), probing (probe), "
         "finetuning (finetune). Options on the command line override it.")]
