"""Words from elsewhere that saved files need: written with the name of the file that registered each."""

from collections.abc import Iterable
from typing import Any

from ...errors import CheckpointError
from ..registry import SLOTS, parse_word, plugin_file, words

PLUGINS = "plugins"                   # the key in config.json and task.json


def plugins_of(used: Iterable[tuple[str, str]]) -> dict[str, dict[str, str]]:
    """What a description says of the (slot, word) that were registered outside this package; nothing if none was."""
    plugins = {f"{slot}: {word}": file for slot, word in used if (file := plugin_file(slot, word)) is not None}
    return {PLUGINS: plugins} if plugins else {}


def require_plugins(plugins: Any, directory: str, file: str) -> None:
    """Refuse a description that needs a word which nobody has registered, and name the word and its file."""
    if not isinstance(plugins, dict):
        raise CheckpointError(f"{directory}/{file} has {PLUGINS} that are not an object.")
    for key, origin in plugins.items():
        slot, _, word = str(key).partition(": ")
        if slot not in SLOTS:
            raise CheckpointError(f"{directory}/{file} names an unknown slot: {slot[:100]!r}.")
        if parse_word(word, slot).name not in words(slot):
            raise CheckpointError(f"{directory} needs the {slot} {word[:100]!r}, which {str(origin)[:100]} registered "
                                  "when it was saved: name that file with --import, or load it with "
                                  "mini_bert.import_file.")
