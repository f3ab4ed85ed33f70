"""The teacher's vectors of the sentences of a corpus, computed once and kept in a file for later epochs and runs.

The corpus has ids of the student's tokenizer. A sentence is decoded, cut as the student reads it, and encoded again by
the teacher's own tokenizer. Vectors are computed in blocks of BLOCK sentences, always the same ones together, so they
do not depend on the order of training, on threads, or on whether the file was there. The file's name is a digest of
all that they depend on.
"""

import json
from collections.abc import Callable
from hashlib import blake2b

import numpy as np

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...errors import ConfigError
from ...files import cache_folder
from ...inference.embed import embed
from ...text.corpora.corpus import Corpus
from ...text.masking import IntArray
from ...text.permutation import Permutation
from ...text.sequences.sequences import SentenceSequences
from ..objective import Team
from .teacher import tokenizer_of, weights_digest
from .vector_file import VectorFile

BLOCK = 512                   # sentences that are embedded together
_BATCH = 32                   # sentences of similar length in one pass
_VERSION = 1                  # of the way in which vectors are computed
_REPORTS = 10                 # times that progress is reported
Say = Callable[[str], None]


class SampledSentences(SentenceSequences):
    """`most` sentences of a split, or all: the same ones for everybody, those of a smaller sample among them."""

    def __init__(self, corpus: Corpus, split: str, T: int, most: int = 0):
        super().__init__(corpus, split, T)
        self.split = split
        self.everything = super().__len__()
        self._size = min(most or self.everything, self.everything)
        self._order = Permutation(self.everything, 0, "sample of sentences")

    def __len__(self) -> int:
        return self._size

    def spans(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        return super().spans(self._order(numbers))


class TeacherVectors:
    """Of sampled sentences, by their numbers."""

    def __init__(self, teacher: MiniBERT, sentences: SampledSentences):
        tokenizer = tokenizer_of(teacher)
        if tokenizer is None:
            raise ConfigError(f"sentence_vectors: the teacher {teacher.source} has no tokenizer next to its weights, "
                              "and cannot read text.")
        self.teacher, self.tokenizer, self.sentences = teacher, tokenizer, sentences
        self.file = VectorFile(cache_folder() / f"sentence-vectors-{self._digest()}.f16", teacher.config.hidden_size)

    def _digest(self) -> str:
        """Of all that the vectors depend on."""
        corpus = self.sentences.corpus
        described = [_VERSION, weights_digest(self.teacher), self.tokenizer.vocabulary.digest(), corpus.fingerprint(),
                     self.sentences.split, self.sentences.room]
        return blake2b(json.dumps(described).encode(), digest_size=16).hexdigest()

    def complete(self, team: Team, say: Say) -> None:
        """Compute the blocks that are not all in the file yet."""
        blocks = -(-len(self.sentences) // BLOCK)
        present = self.file.present(min(blocks * BLOCK, self.sentences.everything))
        missing = [block for block in range(blocks) if not present[block * BLOCK : (block + 1) * BLOCK].all()]
        if not missing:
            return
        say(f"Asking the teacher for the vectors of {sum(map(self._size, missing)):,} sentences; they are kept in "
            f"{self.file.path}.")
        step = max(1, -(-len(missing) // _REPORTS))
        for start in range(0, len(missing), step):
            team.map(self._compute, missing[start : start + step])
            if len(missing) > _REPORTS:
                say(f"{min(start + step, len(missing)) / len(missing):.0%} of the vectors are there.")

    def _size(self, block: int) -> int:
        return min(BLOCK, self.sentences.everything - block * BLOCK)

    def _compute(self, block: int) -> None:
        numbers = np.arange(block * BLOCK, block * BLOCK + self._size(block))
        corpus = self.sentences.corpus
        texts = [corpus.tokenizer.decode(corpus.tokens[start:end].tolist())
                 for start, end in zip(*(bounds.tolist() for bounds in self.sentences.spans(numbers)), strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):
            self.file.write(int(numbers[0]), embed(self.teacher, self.tokenizer, texts, batch_size=_BATCH))

    def __call__(self, numbers: IntArray) -> Array:
        """Vectors (N, D) of unit length, but for the rounding to float16."""
        return self.file.read(numbers)
