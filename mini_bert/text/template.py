"""Where special tokens stand around one text, or around and between two.

    BERT      [CLS] $A [SEP]      [CLS] $A [SEP] $B:1 [SEP]:1
    RoBERTa   <s> $A </s>         <s> $A </s> </s> $B </s>
    XLNet     $A <sep> <cls>:2    $A <sep> $B:1 <sep>:1 <cls>:2
    GPT-2     $A                  $A $B:1

$A and $B are the texts; the number after a colon is the token type, 0 if there is none. tokenizer.json calls this the
post-processor, of which `template_of` reads the kinds that are in use.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import VocabularyError


class Part(NamedTuple):
    """A special token, or the place of a text: "A" or "B"."""

    token: str | None
    text: str | None
    type: int
    ids: tuple[int, ...] = ()     # of the token


class Template:
    """The parts around one text and around two; immutable."""

    def __init__(self, single: Sequence[Part], pair: Sequence[Part]):
        self.single, self.pair = tuple(single), tuple(pair)
        at = next(i for i, part in enumerate(self.single) if part.text == "A")
        self.before = [i for part in self.single[:at] for i in part.ids]          # ids before a single text
        self.after = [i for part in self.single[at:] for i in part.ids]           # and after it

    @classmethod
    def parse(cls, single: str, pair: str, ids: Mapping[str, int]) -> "Template":
        """From two lines such as "[CLS] $A [SEP]" and "[CLS] $A [SEP] $B:1 [SEP]:1"."""
        return cls(*([_part(word, ids) for word in line.split()] for line in (single, pair)))

    def added(self, pair: bool = False) -> int:
        """How many special tokens are added."""
        return sum(len(part.ids) for part in (self.pair if pair else self.single))

    def second_at(self, first: int) -> int:
        """Where the second text begins, if the first one has this many ids."""
        at = next(i for i, part in enumerate(self.pair) if part.text == "B")
        return sum(first if part.text == "A" else len(part.ids) for part in self.pair[:at])

    def place_of(self, token: int | None, first: int, second: int) -> int:
        """The position of a special token around two texts with this many ids; 0 if the template does not have it."""
        ids, _ = self.apply([-1] * first, [-1] * second)
        return ids.index(token) if token in ids else 0

    def apply(self, a: Sequence[int], b: Sequence[int] | None = None) -> tuple[list[int], list[int]]:
        """The ids of one or two texts with the special tokens, and their token types."""
        ids: list[int] = []
        types: list[int] = []
        for part in self.single if b is None else self.pair:
            some = part.ids if part.text is None else a if part.text == "A" or b is None else b
            ids += some
            types += [part.type] * len(some)
        return ids, types

    def to_json(self) -> dict[str, Any]:
        """The post-processor of tokenizer.json."""
        def written(parts: Sequence[Part]) -> list[dict[str, Any]]:
            return [{"SpecialToken": {"id": part.token, "type_id": part.type}} if part.text is None else
                    {"Sequence": {"id": part.text, "type_id": part.type}} for part in parts]

        tokens = {part.token: list(part.ids) for part in (*self.single, *self.pair) if part.token is not None}
        return {"type": "TemplateProcessing", "single": written(self.single), "pair": written(self.pair),
                "special_tokens": {token: {"id": token, "ids": ids, "tokens": [token]}
                                   for token, ids in tokens.items()}}


def _part(word: str, ids: Mapping[str, int]) -> Part:
    name, _, number = word.rpartition(":") if word[-2:-1] == ":" and word[-1].isdigit() else (word, "", "0")
    return Part(None, name[1:], int(number)) if name in ("$A", "$B") else Part(name, None, int(number), (ids[name],))


NOTHING = Template([Part(None, "A", 0)], [Part(None, "A", 0), Part(None, "B", 1)])


# -------------------------------------------------------------------- reading tokenizer.json

def template_of(content: Any, ids: Mapping[str, int], path: Path) -> Template:
    """The template that the `post_processor` of a tokenizer.json describes; kinds that add no tokens are left aside."""
    if content is None:
        return NOTHING
    kind = str(content.get("type")) if isinstance(content, dict) else ""
    if kind == "Sequence" and isinstance(content.get("processors"), list):
        made = [template_of(part, ids, path) for part in content["processors"]]
        adding = [template for template in made if template is not NOTHING]
        if len(adding) > 1:
            raise VocabularyError(f"{path}: post_processor adds special tokens {len(adding)} times; once is supported.")
        return adding[0] if adding else NOTHING
    if kind not in _READERS:
        raise VocabularyError(f"{path}: post_processor has the type {kind[:60]!r}; {', '.join(_READERS)} and "
                              "Sequence are supported.")
    return _READERS[kind](content, ids, path)


def _byte_level(content: dict[str, Any], ids: Mapping[str, int], path: Path) -> Template:
    return NOTHING


def _around(content: dict[str, Any], ids: Mapping[str, int], path: Path, pair: str) -> Template:
    """BertProcessing and RobertaProcessing: two tokens with their ids, in a fixed order."""
    names = {}
    for role in ("cls", "sep"):
        entry = content.get(role)
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str) \
                or ids.get(entry[0]) != entry[1] or type(entry[1]) is not int:
            raise VocabularyError(f"{path}: {role} of post_processor must be a token of the vocabulary and its id.")
        names[role] = entry
    cls, sep = (Part(name, None, 0, (number,)) for name, number in names.values())
    a, b = Part(None, "A", 0), Part(None, "B", 0)
    if pair == "bert":
        return Template([cls, a, sep], [cls, a, sep, b._replace(type=1), sep._replace(type=1)])
    return Template([cls, a, sep], [cls, a, sep, sep, b, sep])


def _bert(content: dict[str, Any], ids: Mapping[str, int], path: Path) -> Template:
    return _around(content, ids, path, "bert")


def _roberta(content: dict[str, Any], ids: Mapping[str, int], path: Path) -> Template:
    return _around(content, ids, path, "roberta")


def _template(content: dict[str, Any], ids: Mapping[str, int], path: Path) -> Template:
    tokens = content.get("special_tokens")
    lines = [_parts(content.get(key), tokens if isinstance(tokens, dict) else {}, ids, f"{path}: {key} of "
                    "post_processor") for key in ("single", "pair")]
    for (key, texts), parts in zip({"single": ["A"], "pair": ["A", "B"]}.items(), lines, strict=True):
        if sorted(part.text for part in parts if part.text is not None) != texts:
            raise VocabularyError(f"{path}: {key} of post_processor must have {' and '.join(texts)} once each.")
    return Template(*lines)


def _parts(content: Any, tokens: dict[str, Any], ids: Mapping[str, int], where: str) -> list[Part]:
    parts = []
    for entry in content if isinstance(content, list) else []:
        kind, value = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else ("", None)
        name, number = (value.get("id"), value.get("type_id")) if isinstance(value, dict) else (None, None)
        if type(number) is not int or not 0 <= number < 256:
            raise VocabularyError(f"{where} has a part that is not an id with a type_id from 0 to 255.")
        if kind == "Sequence" and name in ("A", "B"):
            parts.append(Part(None, name, number))
        elif kind == "SpecialToken" and isinstance(name, str) and isinstance(tokens.get(name), dict):
            own = tokens[name].get("ids")
            if not isinstance(own, list) or not own or not set(map(repr, own)) <= set(map(repr, ids.values())):
                raise VocabularyError(f"{where}: the ids of the special token {name[:60]!r} are not in the vocabulary.")
            parts.append(Part(name, None, number, tuple(own)))
        else:
            raise VocabularyError(f"{where} has the part {str(name)[:60]!r}, which is neither A nor B nor one of its "
                                  "special_tokens.")
    return parts


_READERS = {"TemplateProcessing": _template, "BertProcessing": _bert, "RobertaProcessing": _roberta,
            "ByteLevel": _byte_level}
