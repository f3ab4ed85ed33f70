"""Text from the Hugging Face hub, or from a directory that its library reads, as it streams in.

    hub:NAME[:CONFIG][:SPLIT]       hub:wikitext:wikitext-2-v1:validation    hub:ag_news::test    hub:my/folder

An example is a document, and its lines are the paragraphs. The text is the column `text`, or else the only
column of strings.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import CorpusError
from ..evaluation.formats.named import TaskReader, register_reader
from ..text.corpora.sources import ReadingReport, register_source

PREFIX = "hub:"
_NAME = re.compile(PREFIX + r"([A-Za-z]:[\\/][^:]*|[^:]+)(?::([^:]*))?(?::([^:]*))?")     # C:\ is part of a path


class HubName(NamedTuple):
    """What a name says. With one word behind the dataset, only the dataset knows which of the two it is."""

    dataset: str
    config: str | None = None
    split: str | None = None


def parse_hub_name(name: str) -> HubName:
    """hub:NAME[:CONFIG][:SPLIT] in its parts; an empty part is one left out."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise CorpusError(f"{name} is not of the form hub:NAME[:CONFIG][:SPLIT].")
    return HubName(found[1], found[2] or None, found[3] or None)


class HubSource:
    """A split of a dataset, opened when this is made, so that a wrong name is told before anything is read."""

    size: int | None = None       # a stream does not know the length of its text

    def __init__(self, name: str):
        self.name = name
        self._examples, columns = opened(name)
        self._column = _text_column(columns, name)

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        examples = iter(self._examples)
        while True:
            try:
                text = next(examples)[self._column]
            except StopIteration:
                return
            except Exception as error:
                raise CorpusError(f"{self.name} cannot be read: {sentence_of(error)}.") from None
            if isinstance(text, str):     # a null is no text
                report.bytes_read += len(text.encode("utf-8", "surrogatepass")) + 1
                yield from filter(None, map(str.strip, text.splitlines()))
                yield ""


def opened(name: str) -> tuple[Any, dict[str, bool]]:
    """The examples that a name stands for, as a stream; and their columns, with whether they hold strings."""
    parts = parse_hub_name(name)
    try:
        # by its name: the library is no dependency, and must not be loaded before it is wanted
        library: Any = import_module("datasets")
        _ = library.load_dataset      # a folder of that name can be imported too
    except (ImportError, AttributeError):
        raise CorpusError(f'{name} needs the library datasets: pip install "mini-bert[hub]".') from None
    try:
        examples = _stream(library, parts)
        return examples, _columns(examples)
    except Exception as error:        # whatever the library, the network or the files may raise
        raise CorpusError(f"{name} cannot be opened: {sentence_of(error)}.") from None


def _stream(library: Any, parts: HubName) -> Any:
    dataset, config, split = parts
    if config is not None and split is None and config not in library.get_dataset_config_names(dataset):
        config, split = None, config
    return library.load_dataset(dataset, config, split=split or "train", streaming=True)


def _columns(examples: Any) -> dict[str, bool]:
    """The columns, and whether they hold strings. Where that is not declared, the first example shows it."""
    if examples.features is not None:
        return {name: "string" in str(getattr(kind, "dtype", "")) for name, kind in examples.features.items()}
    return {name: isinstance(value, str) for name, value in next(iter(examples), {}).items()}


def _text_column(columns: dict[str, bool], name: str) -> str:
    if columns.get("text"):
        return "text"
    strings = [column for column, is_string in columns.items() if is_string]
    if len(strings) == 1:
        return strings[0]
    if not columns:
        raise CorpusError(f"{name} has no examples.")
    raise CorpusError(f"{name} has no column named text, and {'several' if strings else 'none'} of its columns "
                      f"hold strings: {', '.join(strings or columns)}.")


def sentence_of(error: Exception) -> str:
    """The beginning of what an error says, as part of a sentence."""
    said = str(error).strip() or type(error).__name__
    return said.splitlines()[0][:300].rstrip(" .")


def _task_reader() -> TaskReader:
    from .hub_tasks import HubTasks  # not above: it brings the readers of all formats along

    return HubTasks()


def register_hub() -> None:
    """Let names that begin with hub: stand wherever a file may."""
    register_source(PREFIX, HubSource)
    register_reader(PREFIX, _task_reader)
