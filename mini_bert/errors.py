"""The package's exceptions. A message is one sentence: what is wrong, with which value, and what to do."""

import re

# control characters and line ends: a message quotes files, and may neither have several lines nor steer a terminal
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST = 2000               # characters of a message; of a longer one the middle is left out


class MiniBertError(Exception):
    """The base class of all errors that Mini-BERT raises on purpose."""

    def __init__(self, message: str = ""):
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} [...] {message[-_LONGEST // 4 :]}"
        super().__init__(_CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), message))


class ConfigError(MiniBertError, ValueError):
    """A model or training configuration that cannot be built."""


class InputError(MiniBertError, ValueError):
    """Arguments that do not fit the model, such as ids, masks or positions."""


class ParameterError(MiniBertError, KeyError):
    """A parameter name that does not exist, or an assignment that would replace a view."""

    def __str__(self) -> str:         # KeyError shows the repr
        return str(self.args[0])


class NumericalError(MiniBertError, ArithmeticError):
    """NaN or infinity in weights or results."""


class CheckpointError(MiniBertError):
    """A model, checkpoint or run that cannot be read or written."""


class VocabularyError(MiniBertError, ValueError):
    """A vocabulary or tokenizer file that cannot be used."""


class CorpusError(MiniBertError):
    """Text that cannot be read, or a corpus that is damaged or belongs to another vocabulary."""


class DataError(MiniBertError):
    """A data set that cannot be read or lacks what a task needs; the message names the file and line."""
