"""A corpus for the length of one measurement, in a folder of the system's own for temporary files."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...errors import CorpusError
from ..tokenizer import Tokenizer
from .corpus import Corpus
from .prepare import prepare
from .sources import Source


@contextmanager
def temporary_corpus(names: Iterable[str | Source], tokenizer: Tokenizer) -> Iterator[Corpus]:
    """The tokenised texts with these names, all in the training split; removed when the context ends."""
    try:
        folder = TemporaryDirectory()
    except OSError as reason:
        raise CorpusError(f"There is no place for temporary files: {reason}.") from reason
    with folder as place:
        prepare(names, tokenizer, made := Path(place) / "corpus", heldout=0.0, workers=1)
        yield Corpus(made)
