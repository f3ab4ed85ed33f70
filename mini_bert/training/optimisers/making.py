"""From the words of a config to the optimiser that they name, with what it wraps."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.params import Parameters
from ...core.registry import Word, check_options, find, make, make_with, parse_word, words
from ...errors import ConfigError
from .moments import Moments
from .optimiser import Optimiser
from .wrapper import Wrapper

_RESERVED = ("learning_rate", "factors", "groups")        # from other settings: schedule, layer_decay, freeze

def optimiser_from(text: str, params: Parameters, settings: Mapping[str, Any],
                   moments: str = "float32") -> Optimiser:
    """The optimiser of `adamw`, or of `lookahead(adamw, k=6)`. Every word gets those of the settings that it takes."""
    made: Any = params
    for word in reversed(optimiser_words(text)):
        made = make_with("optimiser", word, (made,), settings)
    optimiser: Optimiser = made
    optimiser.store(make("moments", moments))
    return optimiser


def optimiser_words(text: str) -> list[Word]:
    """The words from the outermost to the one that takes the steps, each without the word that it wraps."""
    return list(_unwrapped(parse_word(text, "optimiser")))


def plain_words() -> list[str]:
    """The words that name an optimiser by themselves."""
    return [word for word in words("optimiser") if not _wraps(word)]


def _wraps(word: str) -> bool:
    named = find("optimiser", word).named
    return isinstance(named, type) and issubclass(named, Wrapper)


def _unwrapped(word: Word) -> Iterator[Word]:
    wraps = _wraps(word.name)
    inner = [argument for argument in word.arguments if isinstance(argument, Word)]
    if wraps and len(inner) != 1:
        raise ConfigError(f"optimiser: {word.name} wraps one other optimiser; write {word.name}(adamw), not {word}.")
    if inner and not wraps:
        raise ConfigError(f"optimiser: {word.name} wraps no other optimiser, unlike {word}.")
    own = Word(word.name, tuple(argument for argument in word.arguments if argument not in inner), word.options)
    if "learning_rate" in own.options:
        raise ConfigError(f"optimiser: {word.name} takes its learning rate from the schedule; set learning_rate "
                          f"itself, not {word}.")
    check_options("optimiser", own, reserved=_RESERVED)
    yield own
    if inner:
        yield from _unwrapped(inner[0])


def optimiser_bytes(text: str, parameters: int, itemsize: int, moments: str = "float32") -> int:
    """What the optimiser keeps for this number of parameters of this size each."""
    stored: Moments = make("moments", moments)
    return sum(find("optimiser", word.name).named.floats(parameters)
               * (itemsize if _wraps(word.name) else stored.itemsize or itemsize) for word in optimiser_words(text))
