"""What the shell offers for the value of an option, besides files: names of models and of presets."""


def models(incomplete: str) -> list[str]:
    """The models that ship; where none fits, the shell offers directories."""
    from ..pretrained import shipped_names

    return [name for name in shipped_names() if name.startswith(incomplete)]


def presets(incomplete: str) -> list[str]:
    """The presets; where none fits, the shell offers files."""
    from ..configs import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]
