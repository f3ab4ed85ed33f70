"""Which special token has which role: padding, unknown, before and after a text, masked."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..template import Template
from ..vocabulary import Special

_USUAL = {"pad": ("[PAD]", "<pad>"), "unk": ("[UNK]", "<unk>"), "cls": ("[CLS]", "<cls>", "<s>"),
          "sep": ("[SEP]", "<sep>", "</s>"), "mask": ("[MASK]", "<mask>")}
ROLES = tuple(_USUAL)


def content_of(token: Any) -> Any:
    """The name of a token, which files write as text or as an object with flags."""
    return token.get("content") if isinstance(token, dict) else token


def special_of(config: Mapping[str, Any], names: Sequence[str], template: Template, ids: Mapping[str, int]) -> Special:
    """The tokens of each role: as the config says, as the template has them, or by their usual names."""
    by_id = {number: name for name, number in ids.items()}
    around = {"cls": template.before[:1], "sep": template.after[:1]}
    roles: dict[str, str] = {}
    for role, usual in _USUAL.items():
        said = content_of(config.get(f"{role}_token"))
        choices = [said, *(by_id[i] for i in around.get(role, [])), *(name for name in usual if name in names)]
        name = next((name for name in choices if isinstance(name, str) and name in ids), None)
        if name is not None:
            roles[role] = name
    return Special(**roles, others=tuple(name for name in names if name not in roles.values()))
