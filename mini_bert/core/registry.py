"""The one table from the words of a config to what they name.

A word such as `activation: gelu` is looked up here and never compared elsewhere. `register` puts a word in a slot, in
this package's files and in a user's own file alike:

    @register("score_term", "distance_penalty")
    class DistancePenalty: ...

A word may carry options, which go to what it names: `relative_keys(reach=16)`, or another word, which it wraps:
`lookahead(adamw, k=6)`. What is no word, such as a path, stands in quotation marks: `distil(teacher='runs/large')`. A
list of words is joined by `+`; in a sum each may have a weight: `masked + 0.5 other`.
"""

import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..errors import ConfigError

# every slot, and what a word in it names
SLOTS = {
    "activation": "core.ops.Activation: an element-wise operation",
    "norm": "core.module.Norm: normalises rows; made from (config, name, layer, component), "
            "and for rows of another width from size too",
    "score_term": "core.module.ScoreTerm: acts on attention's queries, keys or scores; made from (config, layer)",
    "attention": "a Module that mixes tokens: made from (config, layer)",
    "feedforward": "a Module that works on each token: made from (config, layer)",
    "block": "a Module, one layer of the model, whose result is its step hidden: made from (config, layer)",
    "stack": "core.module.Stack: how layers are run; made from (config)",
    "embeddings": "a Module from token ids to the rows of the first layer: made from (config)",
    "position_embeddings": "core.module.Positions: what tells the first layer where a token is; made from (config)",
    "mlm_head": "core.module.Head: from hidden rows to logits; made from (config)",
    "pooler": "core.module.Head: from hidden rows to one vector per sequence; made from (config)",
    "sentence_head": "core.module.Head: from pooled vectors to scores of how two sentences relate; made from (config)",
    "task_head": "core.modules.heads.tasks.TaskHead: from hidden rows to the scores of labels; made from "
                 "(config, outputs, dropout)",
    "task_loss": "core.modules.losses.loss.ScoreLoss: what a task's head learns from; made from ()",
    "task": "evaluation.tasks.task.Task: what a model is fine-tuned for; made from (train, dev, tokenizer, config)",
    "metric": "evaluation.tasks.metrics.metric.Metric: a figure of a task's predictions, the higher the better",
    "table": "text.tables.table.TableReader: a kind of file with rows and columns; made from ()",
    "objective": "objectives.objective.CorpusObjective: what training minimises; made from (model, passes), the second "
                 "a PassOptions",
    "optimiser": "training.optimisers.optimiser.Optimiser: from gradients to a step; made from (params), a wrapper "
                 "from (inner), another optimiser",
    "activations": "core.precision.activations.Activations: how what a pass keeps of a layer is stored; made from ()",
    "moments": "training.optimisers.moments.Moments: how an optimiser's moments are stored; made from ()",
    "clipping": "training.clipping.clipping.Clipping: limits the gradients of a step; made from (params)",
    "schedule": "a function (progress, decay_share) -> share of the learning rate",
    "init": "training.inits.normal.Init: changes freshly drawn parameters",
    "difficulty": "text.curricula.curriculum.Difficulty: a function from numbers of sequences to how hard they are; "
                  "made from (sequences), a text.batches.Sequences",
    "pacing": "a function (share of the pacing's time) -> share of the way from the curriculum's start to all",
    "sequences": "text.sequences.sequences.Sequences: the numbered sequences of a split; made from (corpus, split, T)",
    "masking_unit": "a function (order, ordinary, continues, wanted, weights) -> the chosen positions (B, T), as in "
                    "text/masking.py",
    "masking_weights": "text.masking.MaskingWeights: how likely each token is to be masked; made from (ordinary), "
                       "which tokens can be",
    "timeline": "analysis.timeline.entry.TimelineEntry: figures of a model, measured at each snapshot of a run",
}
Named = TypeVar("Named")


class Entry(NamedTuple):
    """What a word names, and the file that registered it."""

    named: Any
    file: str


_TABLE: dict[str, dict[str, Entry]] = {slot: {} for slot in SLOTS}
_PACKAGE = Path(__file__).parents[1]


def register(slot: str, word: str) -> Callable[[Named], Named]:
    """Let `word` name the decorated class or function in `slot`. A word that exists already is refused."""
    if slot not in SLOTS:
        raise ConfigError(f"There is no slot {slot!r}; {_choices(slot, list(SLOTS))}")
    if not re.fullmatch(r"[a-z]\w*", word):
        raise ConfigError(f"A word in a config consists of letters, digits and _, and starts with a small letter; "
                          f"{word!r} does not.")
    file = sys._getframe(1).f_code.co_filename
    if not Path(file).is_relative_to(_PACKAGE):
        from . import modules  # noqa: F401  (the built-in words come first, so that none is replaced)

    def enter(named: Named) -> Named:
        known = _TABLE[slot].get(word)
        if known is not None and known.file != file:
            raise ConfigError(f"{slot}: {word!r} is registered already, by {Path(known.file).name}; choose another "
                              "word.")
        _TABLE[slot][word] = Entry(named, file)
        return named

    return enter


@contextmanager
def restored_registry() -> Iterator[None]:
    """Whatever is registered in this block is forgotten at its end."""
    before = {slot: dict(words) for slot, words in _TABLE.items()}
    try:
        yield
    finally:
        for slot, words in before.items():
            _TABLE[slot] = words


def words(slot: str) -> list[str]:
    """The words that can fill a slot."""
    return list(_TABLE[slot])


def plugin_file(slot: str, text: str) -> str | None:
    """The name of the file outside this package that registered the word; None for a built-in word."""
    file = Path(find(slot, text).file)
    return None if file.is_relative_to(_PACKAGE) else file.name


def plugin_paths() -> list[Path]:
    """The files outside this package that registered words."""
    files = {Path(entry.file) for words in _TABLE.values() for entry in words.values()}
    return sorted(file for file in files if not file.is_relative_to(_PACKAGE) and file.is_file())


def import_options() -> str:
    """The --import options that make the same words known to another command."""
    return "".join(f" --import {shlex.quote(os.path.relpath(file))}" for file in plugin_paths())


def find(slot: str, text: str) -> Entry:
    """The entry of a word, whose arguments are left aside."""
    name = parse_word(text, slot).name
    if name not in _TABLE[slot]:
        raise ConfigError(f"{slot}: {name[:100]!r} is not a choice; {_choices(name, words(slot))} "
                          "Load a word of your own with --import FILE.")
    return _TABLE[slot][name]


def make(slot: str, text: "str | Word", *arguments: Any, **more: Any) -> Any:
    """What the word names, called with these arguments and the word's own; returned as it is if it is no function."""
    word = parse_word(text, slot) if isinstance(text, str) else text
    named = find(slot, word.name).named
    if not callable(named):
        if word.arguments or word.options:
            raise ConfigError(f"{slot}: {word.name} takes no options, unlike {word}.")
        return named
    try:
        return named(*arguments, *word.arguments, **more, **word.options)
    except (TypeError, ValueError, ArithmeticError) as error:
        _explain(slot, word, named, arguments, more, error)
        raise


def make_with(slot: str, text: "str | Word", given: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
    """What the word names, made from what is given, the word's own options, and those of the settings that it takes."""
    word = parse_word(text, slot) if isinstance(text, str) else text
    return make(slot, word, *given, **{name: settings[name] for name in takes(slot, word) if name in settings})


def takes(slot: str, text: "str | Word") -> set[str]:
    """The names of the settings that what the word names can be given, beyond those that the word has as options."""
    word = parse_word(text, slot) if isinstance(text, str) else text
    return set(inspect.signature(find(slot, word.name).named).parameters) - word.options.keys()


def check_options(slot: str, word: "Word", given: int = 1, reserved: Iterable[str] = ()) -> None:
    """Refuse options that what the word names does not take, without making it.

    It is made from `given` things, and from the `reserved` ones by name, which are no options of a config."""
    named = find(slot, word.name).named
    own = dict.fromkeys(name for name in reserved if name in _parameters(named))
    try:
        inspect.signature(named).bind_partial(*[None] * given, *word.arguments, **own, **word.options)
    except TypeError:
        _explain(slot, word, named, (None,) * given, own, TypeError())


def _parameters(named: Any) -> dict[str, inspect.Parameter]:
    """What it can be given, by name, and what a class passes on to the one that it inherits from (`**more`)."""
    found = dict(inspect.signature(named).parameters)
    for base in named.__mro__[1:] if isinstance(named, type) else ():
        if not _passes_on(found):
            break
        if "__init__" in vars(base):
            del found[next(name for name, one in found.items() if one.kind is one.VAR_KEYWORD)]
            its = list(inspect.signature(vars(base)["__init__"]).parameters.items())[1:]           # without self
            found |= {name: one for name, one in its if name not in found}
    return found


def _passes_on(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _explain(slot: str, word: "Word", named: Any, arguments: tuple[Any, ...], more: Mapping[str, Any],
             failure: Exception) -> None:
    """Say in one sentence why a word could not be made, if its options or its signature are the reason."""
    known = _parameters(named)
    taken = [name for name, one in list(known.items())[len(arguments):]
             if one.default is not inspect.Parameter.empty and name not in more]
    unknown = [] if _passes_on(known) else [name for name in word.options if name not in known or name in more]
    reason = f"it has no option {unknown[0]}" if unknown else ""
    try:
        inspect.signature(named).bind(*arguments, *word.arguments, **dict(more) | word.options)
    except TypeError as error:
        reason = reason or ("each option needs its name, as in name=value" if word.arguments else str(error))
    if reason:
        own = plugin_file(slot, word.name) is not None        # its author may need to know how a word is made
        raise ConfigError(f"{slot}: {word} cannot be made: {reason}; its options are {', '.join(taken) or 'none'}"
                          + (f", and the slot makes {SLOTS[slot]}." if own else ".")) from None
    if (word.arguments or word.options) and not isinstance(failure, ConfigError):
        raise ConfigError(f"{slot}: {word} has an option that {word.name} cannot use: {failure}.") from None


def _choices(wrong: str, known: list[str]) -> str:
    if not known:
        return "there are none."
    near = get_close_matches(wrong[:100], known, n=1, cutoff=0.0)[0]
    return f"the nearest is {near!r}, and all are {', '.join(known)}."


# -------------------------------------------------------------------- the grammar of words


@dataclass(frozen=True)
class Word:
    """A word of a config with its options: `relative_keys(reach=16)`."""

    name: str
    arguments: tuple[Any, ...] = ()                       # numbers, booleans, texts, or Words
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        inside = [*map(_written, self.arguments),
                  *(f"{key}={_written(value)}" for key, value in self.options.items())]
        return self.name + (f"({', '.join(inside)})" if inside else "")


def _written(value: Any) -> str:
    """A value as the grammar reads it."""
    if isinstance(value, str):
        return f'"{value}"' if "'" in value else f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_word(text: str, what: str = "A word") -> Word:
    """One word, as in `relative_keys(reach=16)`."""
    found = parse_words(text, what)
    if len(found) != 1:
        raise ConfigError(f"{what}: {text[:100]!r} must be one word.")
    return found[0]


def parse_sum(text: str, what: str = "A sum of words") -> list[tuple[float, Word]]:
    """Words joined by +, each with the weight in front of it, 1 where there is none: `masked + 0.5 other`."""
    found = _Reader(text, what).weighted()
    if not found:
        raise ConfigError(f"{what}: at least one word is needed.")
    return found


def parse_words(text: str, what: str = "A list of words") -> list[Word]:
    """Words joined by +; an empty text has none."""
    return list(_parsed(text, what))


@lru_cache(maxsize=256)
def _parsed(text: str, what: str) -> tuple[Word, ...]:
    return tuple(_Reader(text, what).whole())


# a text in quotation marks, a word, a number, or any other character
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|[A-Za-z_]\w*|-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\S""")


class _Reader:
    """Recursive descent:  words = word (+ word)*   sum = [weight] word (+ [weight] word)*   word = name [(options)]"""

    def __init__(self, text: str, what: str):
        if len(text) > 1000:
            raise ConfigError(f"{what}: a config's words have at most 1,000 characters, not {len(text):,}.")
        self.text, self.what = text, what
        self.tokens = re.findall(_TOKEN, self.text)
        self.at = 0

    def whole(self) -> list[Word]:
        found = [] if not self.tokens else [self.word()]
        while self.at < len(self.tokens):
            self.take("+")
            found.append(self.word())
        return found

    def weighted(self) -> list[tuple[float, Word]]:
        found: list[tuple[float, Word]] = []
        while self.at < len(self.tokens):
            if found:
                self.take("+")
            weight = float(self.number(self.take())) if self.is_number(self.peek()) else 1.0
            if not 0 < weight < float("inf"):
                raise ConfigError(f"{self.what}: a weight must be above zero, not {weight:g}.")
            found.append((weight, self.word()))
        return found

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            wanted = repr(expected) if expected else "a word"
            marks = " A path stands in quotation marks." if token in ("/", "\\", ".", "~", ":", "-") else ""
            raise ConfigError(f"{self.what}: {self.text[:100]!r} cannot be read: {wanted} is expected "
                              + (f"before {token!r}." if token else "at its end.") + marks)
        self.at += 1
        return token

    def word(self) -> Word:
        name = self.take()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            marks = " A path stands in quotation marks." if name in ("/", "\\", ".", "~") else ""
            known = f" The words are {', '.join(words(self.what))}." if self.what in SLOTS and not marks else ""
            raise ConfigError(f"{self.what}: {self.text[:100]!r} cannot be read: a word is expected in place of "
                              f"{name[:100]!r}.{marks}{known}")
        arguments: list[Any] = []
        options: dict[str, Any] = {}
        if self.peek() == "(":
            self.take()
            while self.peek() != ")":
                if self.tokens[self.at + 1 : self.at + 2] == ["="]:
                    key, _ = self.take(), self.take("=")
                    if key in options:
                        raise ConfigError(f"{self.what}: {self.text[:100]!r} gives {key} twice.")
                    options[key] = self.value()
                else:
                    arguments.append(self.value())
                if self.peek() == ",":
                    self.take()
                elif self.peek() != ")":
                    self.take(")")
            self.take(")")
        return Word(name, tuple(arguments), options)

    def value(self) -> Any:
        token = self.peek()
        if self.is_number(token):
            return self.number(self.take())
        if token in ("true", "false"):
            return self.take() == "true"
        if token[:1] in ("'", '"') and len(token) > 1:
            return self.take()[1:-1]
        return self.word()

    @staticmethod
    def is_number(token: str) -> bool:
        return bool(re.match(r"-?\.?\d", token))

    @staticmethod
    def number(token: str) -> Any:
        return float(token) if re.search(r"[.eE]", token) else int(token)
