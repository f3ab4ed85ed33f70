"""Opening the explorer: the model and the run that are asked for, and the sentence to begin with."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from ..analysis.passes.sequences import ahead, masked_sentence
from ..errors import ConfigError
from ..factory import load
from ..text.opening import load_tokenizer
from .export import parameters_of
from .queries import Query, read_query
from .runs import Run
from .session import Session


def open_session(model: str | PathLike[str] | None = None, run: str | PathLike[str] | None = None,
                 against: str | PathLike[str] | None = None) -> Session:
    """The model by its name or directory, or else the run's own; without either, mini.

    `against` is a second model, to be compared with it; it may have another vocabulary.
    """
    watched = None if run is None else Run(run)
    place = model if model is not None else "mini" if watched is None else watched.newest()
    session = Session(load(place), load_tokenizer(place), run=watched,
                      name=Path(place).resolve().name if model is not None or watched is None else watched.name,
                      other=None if against is None else Session(load(against), load_tokenizer(against),
                                                                 name=Path(against).resolve().name))
    if watched is not None and model is not None:
        digest = load_tokenizer(watched.newest()).vocabulary.digest()
        if digest != session.tokenizer.vocabulary.digest():
            raise ConfigError(f"The model {model} and the run {run} have different vocabularies, so one sentence "
                              "cannot be shown with both; leave out --model or --run.")
    return session


def opening_query(session: Session, text: str, mask: str = "", targets: Sequence[str] = (), *, choose: bool = False,
                  seed: int = 0, pair: str = "") -> Query:
    """The sentence with its masks; with `choose`, some words are masked by the seed where nothing is."""
    query = read_query({"text": text, "pair": pair, "mask": mask, "target": "\n".join(targets)})
    passes = session.passes(query)
    if choose and not passes.masks and not query.targets and \
            bool(np.any(session.tokenizer.vocabulary.ordinary[passes.sentence.ids])):
        chosen = masked_sentence(session.model, session.tokenizer, text, seed=seed)
        query = replace(query, mask=tuple(row + ahead(session.model) for row in chosen.positions))
    return query


def fragment(query: Query | None) -> str:
    """The part of the page's address that names the sentence."""
    return "" if query is None else f"#/forward?{urlencode(parameters_of(query))}"
