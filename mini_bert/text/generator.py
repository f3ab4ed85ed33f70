"""MLMDataGenerator: masked batches directly from a text file."""

from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

from .batches import MLMBatches
from .corpora.corpus import MANIFEST, Corpus
from .corpora.prepare import prepare
from .masking import Masking
from .tokenizer import Tokenizer


class MLMDataGenerator(MLMBatches):
    """Masked batches of a text file or a prepared corpus: `generator[step]`, or iterate over an epoch.

    A text file is prepared in a temporary directory, which is removed with the generator. For more than a few
    megabytes, prepare a corpus once (`mini-bert data prepare`) and pass its directory.
    """

    def __init__(self, data_path: str | PathLike[str], tokenizer: Tokenizer, max_seq_length: int = 64,
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
