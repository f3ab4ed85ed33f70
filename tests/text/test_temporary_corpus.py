"""A corpus that lasts as long as one measurement."""

import errno
import os
from pathlib import Path

import pytest

from mini_bert.errors import CorpusError
from mini_bert.text.corpora.temporary import temporary_corpus
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer


def test_a_temporary_corpus_is_gone_when_its_context_ends(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The cat sat on the mat.\n")
    with temporary_corpus([str(tmp_path / "text.txt")], WordPieceTokenizer.load("mini")) as corpus:
        assert len(corpus.tokens) > 5
        assert corpus.directory.exists()
    assert not corpus.directory.parent.exists()


def test_a_full_disk_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(CorpusError, match=r"no place for temporary files: .*No space left"), \
            temporary_corpus(["pydocs"], WordPieceTokenizer.load("mini")):
        pass
