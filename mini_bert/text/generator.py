"""MLMDataGenerator: masked batches straight from a text file."""

from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from .batches import MLMBatches
from .corpora.corpus import MANIFEST, Corpus
from .corpora.prepare import prepare
from .masking import Masking
from .wordpiece.tokenizer import WordPieceTokenizer


class MLMDataGenerator(MLMBatches):
    """Masked batches of a text, or of a prepared corpus: `generator[step]`, or iterate over an epoch.

    A text is prepared into a temporary directory that lives as long as the generator; for more than a few
    megabytes, prepare a corpus once (`mini-bert data prepare`) and name its directory here.
    """

    def __init__(self, data_path: str | PathLike[str], tokenizer: WordPieceTokenizer, max_seq_length: int = 64,
                 batch_size: int = 32, *, mode: str = "packed", masking: Masking | None = None, split: str = "train",
                 seed: int = 0):
        path = Path(data_path)
        if not (path / MANIFEST).exists():
            temporary = mkdtemp(prefix="mini-bert-")
            finalize(self, rmtree, temporary, ignore_errors=True)
            path = Path(temporary) / "corpus"
            prepare([str(data_path)], tokenizer, path, heldout=0.0, workers=1)
        corpus = Corpus(path)
        corpus.require_vocabulary(tokenizer)
        super().__init__(corpus, split, max_seq_length=max_seq_length, batch_size=batch_size, mode=mode,
                         masking=masking, seed=seed)
