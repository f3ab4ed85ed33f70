"""The model that is looked at, its last passes, and the steps of training that were taken with it.

One lock guards all of it: requests come from several threads, and a step changes the parameters that a pass reads.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.passes.backward_steps import BackwardPass, backward_pass
from ..analysis.passes.forward_steps import ForwardPass, forward_pass
from ..analysis.passes.sequences import Sentence, ahead, masks_in, plain_ids, read_sentence
from ..core.model import MiniBERT
from ..core.ops.cross_entropy import cross_entropy_forward
from ..core.ops.softmax import softmax_forward
from ..errors import InputError, NumericalError
from ..objectives.masked import MaskedLM
from ..text.batches import MLMBatch
from ..text.tokenizer import Tokenizer
from ..training import optimisers  # noqa: F401  (they fill the registry)
from ..training.optimisers.making import optimiser_from
from ..training.param_groups import groups_of
from ..training.update import Update
from ..workers import Workers
from .queries import Query
from .runs import Run

MOST_TOKENS = 128             # of a sentence, if the model takes as many: more cannot be told apart on a screen
TOP = 8                       # words shown for a mask
_PASSES = 4                   # sentences whose passes are remembered; with a large vocabulary one
_LARGE = 20_000               # words: a pass over 128 tokens then holds tens of megabytes of logits
_UNDO_BYTES = 256 << 20       # of parameters that undo may hold
_MOST_UNDO = 16
_MOST_HISTORY = 100           # steps whose loss is remembered
_AT_A_TIME = 1 << 16          # numbers


class Passes:
    """The passes of one sentence, each made when it is first asked for."""

    def __init__(self, model: MiniBERT, tokenizer: Tokenizer, query: Query):
        self.model, self.tokenizer, self.query = model, tokenizer, query
        plain, self.types = plain_ids(tokenizer, query.text, query.pair)
        if len(plain) > MOST_TOKENS:
            raise InputError(f"The text has {len(plain)} tokens; the explorer takes {MOST_TOKENS}.")
        mask = [p for p in query.mask if p >= len(plain) or plain[p] != tokenizer.vocabulary.roles.get("mask")]
        special = next((p for p in mask if p < len(plain) and not tokenizer.vocabulary.ordinary[plain[p]]), None)
        if special is not None:
            raise InputError(f"Position {special} is {tokenizer.vocabulary[plain[special]]}, which cannot be masked.")
        self.sentence: Sentence = read_sentence(model, tokenizer, query.text, mask=mask, targets=dict(query.targets),
                                                 pair=query.pair)
        self.special = [not bool(tokenizer.vocabulary.ordinary[i]) for i in plain]
        self.original = [tokenizer.vocabulary[i] for i in plain]

    @property
    def ahead(self) -> int:
        """How far behind its row of the logits a token stands."""
        return ahead(self.model)

    @property
    def masks(self) -> list[int]:
        """The positions of [MASK], or of the tokens that a causal model is asked for."""
        return [row + 1 for row in self.sentence.positions] if self.ahead else \
            masks_in(self.sentence.ids, self.tokenizer)

    @cached_property
    def forward(self) -> ForwardPass:
        with np.errstate(over="ignore", invalid="ignore"):       # the model itself refuses what is not finite
            return forward_pass(self.model, self.sentence.ids, self.sentence.tokens, types=self.sentence.types)

    @cached_property
    def probabilities(self) -> npt.NDArray[np.floating]:
        """Of every id at every position (T, V); a model may have more ids than its tokenizer has words."""
        return softmax_forward(self.forward["logits"].array)[0]

    @cached_property
    def targets(self) -> dict[int, int]:
        """By row of the logits, the id to find; where none is known, the model's own first choice."""
        if not self.model.modules.predicts_words:
            raise InputError("This model has no MLM head, so it predicts no words and has no loss.")
        rows = {*(place - self.ahead for place in self.masks), *self.sentence.targets}
        return {row: self.sentence.targets.get(row, int(self.probabilities[row, : len(self.tokenizer)].argmax()))
                for row in sorted(rows)}

    @cached_property
    def backward(self) -> BackwardPass:
        if not self.targets:
            raise InputError("Nothing is masked, so there is no loss: click a word to mask it.")
        return backward_pass(self.forward, self.targets)

    @property
    def batch(self) -> MLMBatch:
        """The sentence and its targets, as training sees them."""
        ids = self.sentence.ids[None]
        targets, asked = ids.copy(), np.zeros(ids.shape, bool)
        for row, target in self.targets.items():
            targets[0, row], asked[0, row] = target, True
        types = self.sentence.types
        return MLMBatch(ids, targets, asked, np.ones(ids.shape, bool), None if types is None else types[None])

    @cached_property
    def words(self) -> npt.NDArray[np.int64]:
        """The words that logits are shown for: the targets, and the likeliest at the masks, or anywhere."""
        rows = [place - self.ahead for place in self.masks] or list(range(len(self.sentence.ids)))
        best = self.probabilities[rows, : len(self.tokenizer)].max(axis=0)
        ids = [*dict.fromkeys(self.targets.values()), *np.argsort(-best, kind="stable")[:32].tolist()]
        return np.array(list(dict.fromkeys(ids))[:32], np.int64)

    def loss(self, targets: Mapping[int, int]) -> float:
        """The mean cross-entropy of these targets, from the logits: a probability may be too small for its float."""
        places = list(targets)
        total, _ = cross_entropy_forward(self.forward["logits"].array[places], np.array([targets[p] for p in places]))
        return total / len(places)

    def prediction(self, row: int, target: int) -> dict[str, Any]:
        """The target of a row of the logits, its probability and rank, and the likeliest words there."""
        found = self.probabilities[row]
        return {"position": row + self.ahead, "row": row, "target": self.tokenizer.vocabulary[target],
                "probability": float(found[target]), "rank": int((found > found[target]).sum()) + 1,
                "candidates": self.candidates(row)}

    def candidates(self, row: int, top: int = TOP) -> list[dict[str, Any]]:
        """The likeliest words in a row of the logits."""
        return likeliest(self.probabilities[row], self.tokenizer, top)


def likeliest(row: npt.NDArray[np.floating], tokenizer: Tokenizer, top: int = TOP) -> list[dict[str, Any]]:
    ids = np.argsort(-row[: len(tokenizer)], kind="stable")[:top].tolist()
    return [{"token": tokenizer.vocabulary[i], "id": i, "probability": float(row[i])} for i in ids]


class Session:
    """One model, looked at by whoever has the page open."""

    def __init__(self, model: MiniBERT, tokenizer: Tokenizer, *, name: str = "model", run: Run | None = None,
                 other: "Session | None" = None):
        self.model, self.tokenizer, self.name, self.run = model, tokenizer, name, run
        self.other = other                                # the model to compare with
        self.lock = RLock()
        self.taken = 0                                    # steps that were not undone
        self.history: deque[dict[str, Any]] = deque(maxlen=_MOST_HISTORY)       # the last of them
        self.version = 0                                  # grows with every change of the parameters
        self._original: npt.NDArray[np.floating] | None = None
        kept = min(_MOST_UNDO, _UNDO_BYTES // model.params.nbytes)
        self._undo: deque[npt.NDArray[np.floating]] = deque(maxlen=max(1, kept))      # parameters before each step
        self._passes: OrderedDict[Query, Passes] = OrderedDict()

    def passes(self, query: Query) -> Passes:
        """The passes of a sentence with the parameters as they are now."""
        with self.lock:
            if query not in self._passes:
                self._passes[query] = Passes(self.model, self.tokenizer, query)
                while len(self._passes) > (_PASSES if self.model.config.vocab_size < _LARGE else 1):
                    self._passes.popitem(last=False)
            self._passes.move_to_end(query)
            return self._passes[query]

    # ---------------------------------------------------------------- training on this sentence

    def step(self, query: Query, rate: float, optimiser: str) -> dict[str, Any]:
        """One step of training on the sentence: the loss before and after, and what it did to the parts of the model.

        The optimiser begins anew each time, without weight decay: AdamW's moments are those of this one gradient. A
        step after which the model has no finite loss for the sentence is taken back at once.
        """
        with self.lock:
            passes, params = self.passes(query), self.model.params
            update = Update(MaskedLM(self.model), optimiser_from(optimiser, params, {"weight_decay": 0.0}), Workers(1))
            loss, before = passes.backward.loss, params.flat.copy()
            with np.errstate(over="ignore", invalid="ignore"):        # told by the loss
                finite = update.step(passes.batch, (), rate).finite
                self._passes.clear()
                after = self._loss_now(query, passes.targets) if finite else None
            if after is None:
                params.flat[...] = before
                self._passes.clear()
                raise InputError(f"A step with the learning rate {rate:g} makes the model's numbers infinite, so it "
                                 "is undone; try a smaller rate.")
            if self._original is None:
                self._original = before
            self._undo.append(before)
            self.taken += 1
            self.version += 1
            self.history.append({"optimiser": optimiser, "learning_rate": rate, "loss": loss})
            gradients = update.batch_gradients
            return {"loss": loss, "loss_after": after,
                    "parts": self._parts(gradients.gradients.flat / gradients.count, before)}

    def _loss_now(self, query: Query, targets: Mapping[int, int]) -> float | None:
        """With the parameters as they are; None if it is not finite."""
        try:
            loss = self.passes(query).loss(targets)
        except NumericalError:
            return None
        return loss if isfinite(loss) else None

    def undo(self) -> None:
        """Put the parameters back, bit for bit, as they were before the last step."""
        with self.lock:
            if not self.taken:
                raise InputError("There is no step to undo.")
            if not self._undo:
                raise InputError("Earlier steps are no longer remembered; reset puts the model back as it was loaded.")
            self.model.params.flat[...] = self._undo.pop()
            self.taken -= 1
            self.history.pop()
            self._changed()

    def reset(self) -> None:
        """Put the parameters back as they were loaded."""
        with self.lock:
            if self._original is not None:
                self.model.params.flat[...] = self._original
            self._original = None
            self._undo.clear()
            self.taken = 0
            self.history.clear()
            self._changed()

    @property
    def undoable(self) -> int:
        return len(self._undo)

    def _changed(self) -> None:
        self.version += 1
        self._passes.clear()              # they read the parameters that have changed

    def _parts(self, gradient: npt.NDArray[np.floating], before: npt.NDArray[np.floating]) -> list[dict[str, Any]]:
        """By part of the model: the norm of its gradient, of its change, and of its change beside its size."""
        params, sums = self.model.params, dict[str, list[float]]()
        for name, part in groups_of(self.model.params).items():
            for start in range(params.slices[name].start, params.slices[name].stop, _AT_A_TIME):
                here = slice(start, min(start + _AT_A_TIME, params.slices[name].stop))
                some = (gradient[here], params.flat[here] - before[here], before[here])
                found = sums.setdefault(part, [0.0, 0.0, 0.0])
                for i, numbers in enumerate(some):
                    found[i] += float(numbers @ numbers)
        return [{"part": part, "gradient": g**0.5, "change": c**0.5, "ratio": (c / w) ** 0.5 if w else 0.0}
                for part, (g, c, w) in sums.items()]
