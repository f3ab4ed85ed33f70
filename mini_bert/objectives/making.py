"""From the words of a config to the objective that they name."""

from typing import Any

from ..core.model import MiniBERT
from ..core.registry import make_with, parse_sum
from .objective import USUAL_PASSES, CorpusObjective, PassOptions
from .one_pass import in_one_pass
from .weighted_sum import Term, WeightedSum


def objective_from(text: str, model: MiniBERT, passes: PassOptions = USUAL_PASSES, main: str = "",
                   sequences: str = "packed", **settings: Any) -> CorpusObjective[Any, Any]:
    """The objective of `masked`, or the weighted sum of `masked + 0.5 sentence_order`, for this model.

    Every word gets those of the settings that it takes. `main` names the main loss, where it is not that of the first
    word. Words that learn from the same sequences, by the setting of that name, read one pass of the model.
    """
    terms = in_one_pass([Term(weight, make_with("objective", word, (model, passes), settings))
                         for weight, word in parse_sum(text, "objective")], sequences)
    alone = terms[0].objective
    return alone if len(terms) == 1 and terms[0].weight == 1 and main in ("", alone.main) else WeightedSum(terms, main)
