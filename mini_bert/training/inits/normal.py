"""The usual start: every matrix and embedding from N(0, init_std), as its spec says."""

from collections.abc import Callable
from typing import NamedTuple

from ...core.config import ModelConfig
from ...core.params import Parameters
from ...core.registry import register
from ...text.corpora.corpus import Corpus


def _suits_all(config: ModelConfig) -> None:
    """Every model can begin so."""


class Init(NamedTuple):
    """How a new model begins: `apply(config, params, corpus)` changes what was drawn; `check(config)` refuses a wrong
    model."""

    apply: Callable[[ModelConfig, Parameters, Corpus], None]
    check: Callable[[ModelConfig], None] = _suits_all


def _as_drawn(config: ModelConfig, params: Parameters, corpus: Corpus) -> None:
    """Nothing changes."""


register("init", "normal")(Init(_as_drawn))
