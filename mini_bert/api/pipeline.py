"""A model with its tokenizer, and what can be done with them: `mini_bert.pipeline("mini")`."""

from collections.abc import Callable
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ..core.model import MiniBERT
from ..core.modules.heads.tasks import Answers
from ..core.task_model import TaskModel
from ..errors import InputError
from ..factory import load
from ..inference.inputs import Progress, require_vocabulary
from ..text.opening import load_tokenizer
from ..text.tokenizer import Tokenizer
from .results import Continuation, Explanation, Filled, Neighbours, Prediction, Results, TextScore

if TYPE_CHECKING:
    from ..evaluation.tasks.storage import SavedTask
    from .finetune import FinetuneResult

T = TypeVar("T")
Texts = list[str] | tuple[str, ...]
Vectors = npt.NDArray[np.float32]
Pair = tuple[str, str]
_POINTS = 129                 # of an integral, for attributions that add up to a hundredth
_TASK = "task.json"           # of a model that mini_bert.finetune saved


def pipeline(model: "str | PathLike[str] | MiniBERT | Pipeline | FinetuneResult" = "mini",
             tokenizer: "str | PathLike[str] | Tokenizer | None" = None, *, threads: int = 0) -> "Pipeline":
    """Open a model to use it: one that ships, by name, or the directory of a run, a fit, a fine-tuned model, or a model
    of Hugging Face.

    What `mini_bert.fit` and `mini_bert.finetune` return can be given too, and a model in memory, with its tokenizer.
    `threads` are used where there is work for several; 0 for all cores.
    """
    if isinstance(model, Pipeline):
        return model
    if isinstance(model, MiniBERT):
        place = model.source if tokenizer is None else tokenizer
        if place is None:
            raise InputError("A model in memory needs its tokenizer: mini_bert.pipeline(model, tokenizer).")
        opened = place if isinstance(place, Tokenizer) else load_tokenizer(place)
        name = type(model).__name__ if model.source is None else Path(model.source).name
        return Pipeline(name, model, opened, threads=threads)
    if not isinstance(model, str | PathLike):             # what was fine-tuned
        return model.pipeline
    if tokenizer is not None:
        raise InputError(f"{model} has its own tokenizer; give one only with a model in memory.")
    if (Path(model) / _TASK).is_file():
        from ..evaluation.tasks.storage import load_task  # here: a model without a task needs nothing of it

        saved = load_task(model)
        return Pipeline(Path(model).name, saved.model, saved.tokenizer, saved, threads=threads)
    return Pipeline(str(model) if isinstance(model, str) else Path(model).name, load(model), load_tokenizer(model),
                    threads=threads)


class Pipeline:
    """A model at work. A method that the model cannot offer says why in one sentence.

    Methods that take a text also take a list of texts, and then return a list of results.
    """

    def __init__(self, name: str, model: MiniBERT, tokenizer: Tokenizer, task: "SavedTask | None" = None, *,
                 threads: int = 0):
        require_vocabulary(model, tokenizer)
        self.name, self.model, self.tokenizer, self.threads = name, model, tokenizer, threads
        self.task = _task_of(model, tokenizer) if task is None else task

    @cached_property
    def _words(self) -> MiniBERT:
        """The model without a task's head, whose `forward` gives logits of words."""
        return self.model.encoder() if isinstance(self.model, TaskModel) else self.model

    def __repr__(self) -> str:
        config, offers = self.model.config, [name for name in _OFFERS if self.lacks(name) is None]
        labels = f"{len(self.task.labels)} labels, " if self.task is not None and self.task.labels else ""
        return (f"<{self.name}: {self.model.get_parameter_count():,} parameters, {config.num_layers} layers of "
                f"{config.hidden_size}, {labels}{len(self.tokenizer):,} pieces, texts of {config.max_seq_length} "
                f"tokens; {', '.join(offers)}>")

    # ---------------------------------------------------------------- words

    @overload
    def fill_mask(self, text: str, top: int = 5) -> Filled: ...
    @overload
    def fill_mask(self, text: Texts, top: int = 5) -> Results[Filled]: ...

    def fill_mask(self, text: str | Texts, top: int = 5) -> Filled | Results[Filled]:
        """The `top` most probable words for each [MASK]; several masks are filled independently of each other."""
        from ..inference.fill_mask import fill_mask

        self._require("fill_mask")
        return _each(text, lambda one: Filled(one, fill_mask(self._words, self.tokenizer, one, top)))

    def generate(self, prompt: str = "", tokens: int = 100, *, temperature: float = 0.8, top_k: int = 40,
                 top_p: float = 0.95, seed: int = 0, listener: Callable[[str], Any] | None = None) -> Continuation:
        """Continue a text, token by token. `temperature` 0 always takes the likeliest token.

        `listener` is called with each part of the text as soon as it is known.
        """
        from ..inference.generate import generate

        self._require("generate")
        parts = []
        for part in generate(self._words, self.tokenizer, prompt, tokens, temperature=temperature, top_k=top_k,
                             top_p=top_p, seed=seed):
            parts.append(part)
            if listener is not None:
                listener(part)
        return Continuation(prompt, "".join(parts))

    @overload
    def score(self, text: str, *, batch_size: int = 256) -> TextScore: ...
    @overload
    def score(self, text: Texts, *, batch_size: int = 256) -> Results[TextScore]: ...

    def score(self, text: str | Texts, *, batch_size: int = 256) -> TextScore | Results[TextScore]:
        """How likely a text is: the sum of its tokens' log-probabilities, each from all others (pseudo-log-likelihood)
        or, for a causal model, from those before it."""
        from ..evaluation.zero_shot.text_scores import text_scores, way_of_scoring
        from ..inference.score import score

        self._require("score")
        texts, measure = _listed(text), way_of_scoring(self._words)
        if self.lacks("fill_mask") is None and not self.model.modules.stack.orders:
            found = [TextScore(one, measure, made.total, len(made.tokens), made) for one, made in zip(
                texts, score(self._words, self.tokenizer, texts, batch_size=batch_size, threads=self.threads),
                strict=True)]
        else:
            sums = text_scores(self._words, self.tokenizer, texts, threads=self.threads)
            found = [TextScore(one, measure, float(total), int(pieces)) for one, total, pieces in zip(
                texts, sums.totals["token"], sums.pieces, strict=True)]
        return found[0] if isinstance(text, str) else Results(found)

    # ---------------------------------------------------------------- vectors

    def embed(self, text: str | Texts, *, normalise: bool = True, batch_size: int = 256,
              progress: Progress | None = None, too_long: list[int] | None = None) -> Vectors:
        """A vector (H,) for a text, or (N, H) for a list: the mean of its tokens' hidden states, scaled to length 1."""
        from ..inference.embed import embed

        vectors = embed(self.model, self.tokenizer, _listed(text), normalise=normalise, batch_size=batch_size,
                        threads=self.threads, progress=progress, too_long=too_long)
        return vectors[0] if isinstance(text, str) else vectors

    def similar(self, query: str, texts: Texts, top: int = 5, *, batch_size: int = 256,
                progress: Progress | None = None, too_long: list[int] | None = None) -> Neighbours:
        """The texts whose vectors have the highest cosine similarity to the query's."""
        from ..inference.embed import similar

        return Neighbours(query, similar(self.model, self.tokenizer, query, texts, top=top, batch_size=batch_size,
                                         threads=self.threads, progress=progress, too_long=too_long))

    # ---------------------------------------------------------------- labels

    @overload
    def predict(self, text: str | Pair) -> Prediction: ...
    @overload
    def predict(self, text: list[str] | list[Pair]) -> Results[Prediction]: ...

    def predict(self, text: str | Pair | list[str] | list[Pair]) -> Prediction | Results[Prediction]:
        """What a fine-tuned model says: a label, entities, a number, or an answer. A pair of texts, or a question and
        its text, is a tuple."""
        from ..evaluation.tasks.answers import answer_lines
        from ..workers import workers

        given: Any = text
        single = isinstance(text, str | tuple)
        lines = ["\t".join(one) if isinstance(one, tuple) else one for one in ([given] if single else given)]
        with workers(self.threads) as team:
            found = [Prediction(one.text, one.shown, one.probability, one.detail)
                     for one in answer_lines(self._required_task(), lines, team)]
        return found[0] if single else Results(found)

    # ---------------------------------------------------------------- reasons

    def explain(self, text: str, target: str | None = None) -> Explanation:
        """Which tokens of a text speak for a prediction: for a word at its only [MASK], or for a label.

        `target` is that word or label; without it, the most probable one is explained.
        """
        from ..analysis.passes.saliency import explain_label, explain_prediction

        self._require("explain")
        if self._labels_texts():
            labels = self._required_task().labels
            found = self.predict(text).probabilities or {}
            label = max(found, key=lambda name: found[name]) if target is None else target
            if label not in labels:
                raise InputError(f"{label!r} is not a label of {self.name}; it has {', '.join(labels)}.")
            assert isinstance(self.model, TaskModel)
            saliency = explain_label(self.model, self.tokenizer, text, labels.index(label), steps=_POINTS)
            return Explanation.of(label, saliency)
        masks = self.fill_mask(text, top=1).masks
        if len(masks) != 1:
            raise InputError(f"One prediction is explained at a time, and the text has {len(masks)} masks.")
        word = masks[0][0].token if target is None else target
        place = self.tokenizer.encode(self.tokenizer.with_mask(text)).index(self.tokenizer.vocabulary.mask)
        return Explanation.of(word, explain_prediction(self._words, self.tokenizer, text, place, word, steps=_POINTS))

    # ---------------------------------------------------------------- what it can do

    def _require(self, what: str) -> None:
        if (lack := self.lacks(what)) is not None:
            raise InputError(f"{self.name} cannot {_OFFERS[what]}: {lack}.")

    def _required_task(self) -> "SavedTask":
        self._require("predict")
        assert self.task is not None
        return self.task

    def lacks(self, what: str) -> str | None:
        """Why the model does not offer a method; None if it does."""
        modules = self.model.modules
        if what == "predict" and self.task is None:
            return "it has no head for a task; mini_bert.finetune trains one"
        if what == "generate" and not (modules.can_be_causal and modules.predicts_words):
            return "it is not causal; use a causal model, such as mini-gpt or a GPT-2"
        if what == "score" and not modules.has_logits:
            return "it has no head for words or for replaced tokens"
        if what == "fill_mask" or (what == "explain" and not self._labels_texts()):
            if not modules.predicts_words:
                return "it has no head for words"
            if modules.causal:
                return "it is causal, so its tokens do not see later ones"
            if "mask" not in self.tokenizer.vocabulary.roles:
                return "its vocabulary has no [MASK]"
        return None

    def _labels_texts(self) -> bool:
        """Does its task give each text one label?"""
        return isinstance(self.model, TaskModel) and self.model.task.answers is Answers.SEQUENCE \
            and self.task is not None and len(self.task.labels) > 1 and not self.task.pairs


# method -> what a model does by it, in an error
_OFFERS = {"fill_mask": "fill masks", "embed": "embed texts", "similar": "compare texts", "score": "score texts",
           "predict": "predict", "generate": "generate text", "explain": "explain a prediction"}


def _task_of(model: MiniBERT, tokenizer: Tokenizer) -> "SavedTask | None":
    """The task of a model whose own files have its head."""
    if not isinstance(model, TaskModel):
        return None
    from ..evaluation.tasks.storage import task_of

    return task_of(model, tokenizer)


def _listed(text: str | Texts) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _each(text: str | Texts, compute: Callable[[str], T]) -> T | Results[T]:
    """The result of a text, or of each of several; an error names the text if there are several."""
    if isinstance(text, str):
        return compute(text)
    found = Results[T]()
    for number, one in enumerate(text, 1):
        try:
            found.append(compute(one))
        except InputError as error:
            raise InputError(f"Text {number}: {error}" if len(text) > 1 else str(error)) from None
    return found
