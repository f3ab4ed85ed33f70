"""Text streamed from the Hugging Face hub, or from a local directory that `datasets` can read.

    hub:NAME[:CONFIG][:SPLIT]       hub:wikitext:wikitext-2-v1:validation    hub:ag_news::test    hub:my/folder

Each example is a document, and its lines are paragraphs. The text is the column `text`, or the only column of strings.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import CorpusError, MiniBertError
from ..evaluation.formats.named import TaskReader, register_reader
from ..text.corpora.sources import ReadingReport, register_source

PREFIX = "hub:"
_NAME = re.compile(PREFIX + r"([A-Za-z]:[\\/][^:]*|[^:]+)(?::([^:]*))?(?::([^:]*))?")     # C:\ is part of a path


class HubName(NamedTuple):
    """The parts of a name. A single word after the dataset may be a config or a split; `config` has it."""

    dataset: str
    config: str | None = None
    split: str | None = None


def parse_hub_name(name: str) -> HubName:
    """Parse hub:NAME[:CONFIG][:SPLIT]; an empty part is the same as none."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise CorpusError(f"{name} does not have the form hub:NAME[:CONFIG][:SPLIT].")
    return HubName(found[1], found[2] or None, found[3] or None)


class HubSource:
    """A split of a dataset. It is opened at once, so that a wrong name is reported before anything is read."""

    size: int | None = None       # not known for a stream

    def __init__(self, name: str):
        self.name = name
        self._examples, columns = open_dataset(name)
        self._column = _text_column(columns, name)

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        for example in read_examples(self._examples, self.name, CorpusError):
            text = example.get(self._column)
            if isinstance(text, str):     # it may be null or missing
                report.bytes_read += len(text.encode("utf-8", "surrogatepass")) + 1
                yield from filter(None, map(str.strip, text.splitlines()))
                yield ""


def open_dataset(name: str) -> tuple[Any, dict[str, bool]]:
    """A dataset as a stream of examples, and its columns: whether each holds strings."""
    parts = parse_hub_name(name)
    try:
        # imported here: the library is an extra, and slow to load
        library: Any = import_module("datasets")
        _ = library.load_dataset      # a folder named datasets can be imported too
    except (ImportError, AttributeError):
        raise CorpusError(f'{name} needs the library datasets: pip install "mini-bert[hub]".') from None
    try:
        examples = _stream(library, parts)
        return examples, _columns(examples)
    except Exception as error:        # the library, the network and the files raise many kinds
        raise CorpusError(f"{name} cannot be opened: {_summary(error)}.") from None


def read_examples(examples: Any, name: str, error: type[MiniBertError]) -> Iterator[dict[str, Any]]:
    """The examples of an open dataset; whatever the library raises becomes `error`."""
    try:
        yield from examples
    except Exception as reason:
        raise error(f"{name} cannot be read: {_summary(reason)}.") from None


def _stream(library: Any, parts: HubName) -> Any:
    dataset, config, split = parts
    if config is not None and split is None and config not in library.get_dataset_config_names(dataset):
        config, split = None, config
    return library.load_dataset(dataset, config, split=split or "train", streaming=True)


def _columns(examples: Any) -> dict[str, bool]:
    """Whether each column holds strings, as declared or, if nothing is declared, in the first example."""
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


def _summary(error: Exception) -> str:
    """The first line of an error's message, without its full stop."""
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0][:300].rstrip(" .")


def _task_reader() -> TaskReader:
    from .hub_tasks import HubTasks  # here: it imports the readers of all formats

    return HubTasks()


register_source(PREFIX, HubSource)            # hub: names are accepted wherever a file is
register_reader(PREFIX, _task_reader)
