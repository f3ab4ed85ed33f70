"""The package's own exceptions: one clear sentence each, naming the thing, the value and the choice."""


class MiniBertError(Exception):
    """Anything that Mini-BERT refuses. Catch this one to catch them all."""


class ConfigError(MiniBertError, ValueError):
    """A model or training configuration that cannot be built."""


class InputError(MiniBertError, ValueError):
    """Arrays that do not fit the model: ids, masks, positions, targets."""


class ParameterError(MiniBertError, KeyError):
    """A parameter name that does not exist, or an assignment that would replace a view."""

    def __str__(self) -> str:         # KeyError would show the repr
        return str(self.args[0])


class NumericalError(MiniBertError, ArithmeticError):
    """A result that is not a finite number: NaN or infinity in the weights, or an overflow."""


class CheckpointError(MiniBertError):
    """A file or directory that is not a readable, complete and finite model."""


class VocabularyError(MiniBertError, ValueError):
    """A vocabulary or tokenizer file that cannot be used."""


class CorpusError(MiniBertError):
    """Text that cannot be read, or a corpus that is not whole or not of this vocabulary."""


class DataError(MiniBertError):
    """A data set that cannot be read, or that has not what a task needs; the file and the line are named."""
