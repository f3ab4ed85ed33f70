"""The files at a place, as a kind of tokenizer looks at them to claim them."""

import json
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import VocabularyError
from ..files import finish_renames
from ..pretrained import model_directory
from ..readers import read_json_if_there

CONFIG, TOKENIZER_JSON = "tokenizer_config.json", "tokenizer.json"


@dataclass(frozen=True)
class TokenizerFiles:
    """A directory, or a file in it; the JSON files are read once, when they are first asked for."""

    path: Path                    # as it was given

    @classmethod
    def at(cls, path: str | PathLike[str]) -> "TokenizerFiles":
        """The place of a shipped model, a run, a directory or a file."""
        return cls(model_directory(path))

    @cached_property
    def is_file(self) -> bool:
        try:
            return self.path.is_file()
        except (OSError, ValueError):             # not a valid file name
            return False

    @cached_property
    def directory(self) -> Path:
        """The directory; refuses a place where there is none."""
        directory = self.path.parent if self.is_file else self.path
        try:
            there = directory.is_dir()
        except (OSError, ValueError):
            there = False
        if not there:
            raise VocabularyError(f"There is no tokenizer at {self.path}; give a directory or a vocabulary file.")
        finish_renames(directory)
        return directory

    def has(self, name: str) -> bool:
        """Is there a file of this name? Of a place that is a file, the files next to it count."""
        return (self.directory / name).exists()

    @cached_property
    def full(self) -> dict[str, Any] | None:
        """tokenizer.json; None if there is none."""
        return read_json_if_there(self.directory / TOKENIZER_JSON, VocabularyError)

    @cached_property
    def config(self) -> dict[str, Any] | None:
        """tokenizer_config.json; None if there is none."""
        return read_json_if_there(self.directory / CONFIG, VocabularyError)

    @property
    def model(self) -> dict[str, Any]:
        """`model` of tokenizer.json."""
        model = (self.full or {}).get("model")
        return model if isinstance(model, dict) else {}

    @property
    def algorithm(self) -> str | None:
        """The type of the model in tokenizer.json. Files of older libraries leave it out: merges are those of BPE."""
        if "type" in self.model:
            return str(self.model["type"])
        return None if not self.model else "BPE" if "merges" in self.model else "WordPiece"

    def parts(self, key: str) -> list[dict[str, Any]]:
        """The normalizer, pre_tokenizer, post_processor or decoder of tokenizer.json; of a Sequence, its members."""
        content = (self.full or {}).get(key)
        if not isinstance(content, dict):
            return []
        if content.get("type") != "Sequence":
            return [content]
        members = next((value for value in content.values() if isinstance(value, list)), [])
        return [part for part in members if isinstance(part, dict)]


def dump_json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
