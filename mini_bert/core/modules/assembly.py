"""The modules of a model, chosen by its config's words, in the order of the data."""

from dataclasses import replace
from typing import Any, NamedTuple

from ..config import ModelConfig
from ..formulas import Steps
from ..module import Head, Layout, Norm, Sizes, Stack, names_of
from ..params import ParamSpec
from ..registry import make
from .heads.absent import NoHead
from .heads.replaced_tokens import ReplacedTokensHead


class TaskSpec(NamedTuple):
    """The head of a task: its word, the number of its outputs, the names of its labels, if they have any, and the word
    of the loss that it learned from."""

    head: str
    outputs: int
    labels: tuple[str, ...] = ()
    loss: str = "cross_entropy"


class Modules:
    """Parts without numbers: what a model is made of, and where its parameters are."""

    def __init__(self, config: ModelConfig):
        self.embed: Any = make("embeddings", config.embeddings, config)
        self.stack: Stack = make("stack", config.stack, config)
        self.final_ln: Norm | None = make("norm", config.norm, config, "final_ln") if config.final_layernorm else None
        self.mlm_head: Head = make("mlm_head", config.mlm_head, config)
        self.pooler: Head = make("pooler", config.pooler, config)
        self.sentence_head: Head = make("sentence_head", config.sentence_head, config)
        # what only the MLM head reads, so that its gradients are complete when its backward is done
        self.of_mlm_head_alone = names_of([self.mlm_head]) - names_of([self.embed, self.stack])

    def layout(self) -> Layout:
        """Every parameter in the order of the data."""
        for part in (self.embed, self.stack, self.final_ln, self.mlm_head, self.pooler, self.sentence_head):
            if part is not None:
                yield from part.layout()

    @property
    def has_logits(self) -> bool:
        """Does the model have a head, so that its `forward` gives something?"""
        return not isinstance(self.mlm_head, NoHead)

    @property
    def predicts_words(self) -> bool:
        """Does the model have an MLM head?"""
        return not isinstance(self.mlm_head, NoHead | ReplacedTokensHead)

    @property
    def finds_replaced(self) -> bool:
        """Does the model say of each token whether it was replaced? It then has one logit for each, not V."""
        return isinstance(self.mlm_head, ReplacedTokensHead)

    @property
    def causal(self) -> bool:
        """Does a token's hidden state depend on what comes before it alone, so that it can predict the next one?"""
        return all(getattr(getattr(layer, "attention", None), "causal", False) for layer in self.stack.layers)

    @property
    def can_be_causal(self) -> bool:
        """Is the model causal, or will it be in the sequences of a pass that ask for it?"""
        return all(getattr(getattr(layer, "attention", None), "can_be_causal", False) for layer in self.stack.layers)

    @property
    def relates_sentences(self) -> bool:
        """Does the model have a head for pairs of sentences?"""
        return not isinstance(self.sentence_head, NoHead)

    @property
    def pools(self) -> bool:
        """Does the model have a pooler?"""
        return not isinstance(self.pooler, NoHead)

    def steps(self) -> Steps:
        """Every step from the token embeddings to the logits, or to the hidden states of a model without a head."""
        yield from (replace(step, group="Embeddings") for step in self.embed.steps())
        x = "embeddings"
        for step in self.stack.steps(x):
            yield step
            x = step.name
        if self.final_ln is not None:
            yield self.final_ln.step("final_hidden", "Final LayerNorm", "h", x)
            x = "final_hidden"
        yield from self.mlm_head.steps(x)

    def floats(self, sizes: Sizes) -> int:
        """How many numbers a pass keeps for its backward."""
        parts = (self.embed, self.stack, self.final_ln, self.mlm_head)
        return sum(part.floats(sizes) for part in parts if part is not None)


def parameter_specs(config: ModelConfig, task: TaskSpec | None = None) -> list[ParamSpec]:
    """The parameters of a model with this config, and of a task's head behind it, without making them."""
    head = [] if task is None else make("task_head", task.head, config, task.outputs, 0.0).layout()
    return [item for item in (*Modules(config).layout(), *head) if isinstance(item, ParamSpec)]
