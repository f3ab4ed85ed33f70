"""From the words of a config to a curriculum and to masking weights.

    rarity                                             a difficulty, with the usual pacing
    length(pacing=log, start=0.1, until=0.5)           pacing, start and until are the curriculum's options
    commas(least=2, pacing=root(power=3))              all others are those of the difficulty
"""

from functools import partial
from typing import Any

import numpy as np

from ...core.registry import Word, check_options, find, make, parse_word
from ...errors import ConfigError
from ...text.curricula.curriculum import Curriculum, Difficulty
from ...text.masking import BoolArray, MaskingWeights
from ...text.sequences.sequences import Sequences

_OPTIONS = ("start", "until")
_LINEAR = Word("linear")


def curriculum_words(text: str) -> list[tuple[str, str]]:
    """(slot, word) of what a curriculum's text names; none of an empty one."""
    if not text:
        return []
    word = parse_word(text, "curriculum")
    return [("difficulty", word.name), ("pacing", _pacing(word).name)]


def curriculum_from(text: str) -> Curriculum | None:
    """The curriculum that a config's text describes, or none."""
    if not text:
        return None
    word = parse_word(text, "curriculum")
    own = Word(word.name, word.arguments, {name: value for name, value in word.options.items()
                                           if name not in (*_OPTIONS, "pacing")})
    find("difficulty", own.name)
    check_options("difficulty", own)
    pacing = _pacing(word)
    check_options("pacing", pacing)

    def difficulty(sequences: Sequences) -> Difficulty:
        made: Difficulty = make("difficulty", own, sequences)
        if not callable(made):
            raise ConfigError(f"difficulty: {own} made {type(made).__name__}, which cannot be called with the numbers "
                              "of sequences.")
        return made

    shape: Any = partial(find("pacing", pacing.name).named, **pacing.options)
    if pacing.arguments:
        raise ConfigError(f"pacing: write the options of {pacing} with their names, such as root(power=3).")
    return Curriculum(difficulty, shape, **{name: word.options[name] for name in _OPTIONS if name in word.options})


def _pacing(word: Word) -> Word:
    found = word.options.get("pacing", _LINEAR)
    if not isinstance(found, str | Word):
        raise ConfigError(f"curriculum: pacing must be a word, such as root, not {found}.")
    return parse_word(found, "pacing") if isinstance(found, str) else found


def masking_weights_from(text: str, ordinary: BoolArray) -> MaskingWeights | None:
    """The weights that a config's word names, for a vocabulary of which these can be masked; None if all are alike."""
    made: MaskingWeights | None = make("masking_weights", text, ordinary)
    return made


def check_masking_weights(text: str) -> bool:
    """Refuse a word, or options of it, that give no weights. Do they learn from the model?"""
    return masking_weights_from(text, np.ones(8, bool)) is not None
