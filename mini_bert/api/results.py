"""The results of a pipeline's methods: small objects that print in readable form."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InputError
from ..inference.embed import Neighbour
from ..inference.fill_mask import Candidate
from ..inference.score import Score

if TYPE_CHECKING:
    from ..analysis.passes.saliency import Saliency

T = TypeVar("T")
_BAR = 20                     # characters of the longest bar


class Printed:
    """The base of results: at a prompt and in a notebook they show what `print` prints."""

    def __repr__(self) -> str:
        return str(self)


class Results(list[T]):
    """Results of several texts, in the order of the texts."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> list[dict[str, Any]]:
        return [result.to_dict() for result in self]              # type: ignore[attr-defined]


@dataclass(frozen=True, repr=False)
class Filled(Printed):
    """The most probable words for each [MASK] of a text."""

    text: str
    masks: list[list[Candidate]]          # of each [MASK], in order, the most probable word first

    @property
    def candidates(self) -> list[Candidate]:
        """Those of the only [MASK]."""
        if len(self.masks) != 1:
            raise InputError(f"The text has {len(self.masks)} masks; `masks` has the candidates of each.")
        return self.masks[0]

    @property
    def words(self) -> list[str]:
        """The most probable word for each [MASK]."""
        return [candidates[0].token for candidates in self.masks]

    def __str__(self) -> str:
        lines = [self.text]
        for number, candidates in enumerate(self.masks, 1):
            lines += [f"  mask {number}:"] if len(self.masks) > 1 else []
            lines += [f"  {candidate.probability:6.1%}  {candidate.token}" for candidate in candidates]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "masks": [[candidate._asdict() for candidate in candidates]
                                             for candidates in self.masks]}


class Neighbours(Results[Neighbour]):
    """The texts nearest to a query, the nearest first."""

    def __init__(self, query: str, found: list[Neighbour]):
        super().__init__(found)
        self.query = query

    def __str__(self) -> str:
        return "\n".join([self.query, *(f"  {found.cosine:5.3f}  {found.text}" for found in self)])

    def to_dict(self) -> list[dict[str, Any]]:
        return [found._asdict() for found in self]


@dataclass(frozen=True, repr=False)
class TextScore(Printed):
    """How likely a text is to a model, by `measure`; higher is likelier."""

    text: str
    measure: str                          # such as pseudo-log-likelihood
    total: float
    pieces: int
    detail: Score | None = None           # of each token, if the model fills masks

    @property
    def per_token(self) -> float | None:
        """None for a text without tokens."""
        return self.total / self.pieces if self.pieces else None

    @property
    def perplexity(self) -> float | None:
        """exp of the mean negative log-probability per token; None where the score is no such sum."""
        return None if self.detail is None or not self.pieces else self.detail.perplexity

    def __str__(self) -> str:
        mean = "" if self.per_token is None else f" ({self.per_token:.2f} per token)"
        return f"{self.total:9.2f}{mean}  {self.text}"

    def to_dict(self) -> dict[str, Any]:
        detail = {"tokens": None, "log_probabilities": None} if self.detail is None else self.detail._asdict()
        return {"text": self.text, "measure": self.measure, **detail, "total": self.total,
                "perplexity": self.perplexity}


@dataclass(frozen=True, repr=False)
class Prediction(Printed):
    """What a fine-tuned model says about a text: a label, entities, a number, or the answer to a question."""

    text: str
    answer: str
    probability: float | None
    detail: dict[str, Any]

    @property
    def probabilities(self) -> dict[str, float] | None:
        """Of every label, for a model that chooses among labels."""
        return self.detail.get("probabilities")

    def __str__(self) -> str:
        sure = "" if self.probability is None else f"  {self.probability:.1%}"
        return f"{self.answer}{sure}  {self.text}".replace("\t", " | ")

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "answer": self.answer, "probability": self.probability, **self.detail}


@dataclass(frozen=True, repr=False)
class Continuation(Printed):
    """A text that a causal model has continued."""

    prompt: str
    continuation: str

    def __str__(self) -> str:
        return self.prompt + self.continuation

    def to_dict(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "continuation": self.continuation}


@dataclass(frozen=True, repr=False)
class Explanation(Printed):
    """What each token of a text adds to a prediction, in logits, by integrated gradients.

    Their sum over the tokens is close to the prediction's logit, less that of a text in which every token is [MASK].
    """

    prediction: str                       # a word, or a label
    probability: float
    tokens: list[str]
    attributions: list[float]

    @classmethod
    def of(cls, prediction: str, found: "Saliency") -> "Explanation":
        return cls(prediction, float("nan") if found.probability is None else found.probability, found.tokens or [],
                   found.attributions.tolist())

    def __str__(self) -> str:
        largest = max(map(abs, self.attributions), default=0) or 1
        width = max(map(len, self.tokens), default=0)
        lines = [f"{self.prediction}  {self.probability:.1%}"]
        for token, value in zip(self.tokens, self.attributions, strict=True):
            bar = ("+" if value > 0 else "-") * round(_BAR * abs(value) / largest)
            lines.append(f"  {token:{width}}  {value:+6.2f}  {bar}".rstrip())
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {"prediction": self.prediction, "probability": self.probability, "tokens": self.tokens,
                "attributions": self.attributions}
