"""The package's own exceptions: one clear sentence each, naming the thing, the value and the choice."""


class MiniBertError(Exception):
    """Anything that Mini-BERT refuses. Catch this one to catch them all."""


class ConfigError(MiniBertError, ValueError):
    """A model or training configuration that cannot be built."""


class InputError(MiniBertError, ValueError):
    """Arrays that do not fit the model: ids, masks, positions, targets."""


class ParameterError(MiniBertError, LookupError):
    """A parameter name that does not exist, or an assignment that would replace a view."""


class CheckpointError(MiniBertError):
    """A file or directory that is not a readable, complete and finite model."""
