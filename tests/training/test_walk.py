"""The walk of one batch in docs/design.md, compared with the files that really run."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mini_bert
from mini_bert import MiniBERT, ModelConfig
from mini_bert.text.corpora.prepare import prepare
from mini_bert.training.config import TrainingConfig
from mini_bert.training.trainer import Trainer

PACKAGE = Path(mini_bert.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "design.md").read_text().partition("## The walk of one batch")[2]
STATIONS = re.findall(r"^\d+\. \[[^]]+\]\(\.\./mini_bert/([^)]+)\)", PAGE, re.MULTILINE)


def files_run_by(act: Callable[[], object]) -> set[str]:
    found = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            found.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return found


def test_the_walk_of_one_batch_names_the_files_of_a_step(corpus):
    config = ModelConfig(num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=60)
    trainer = Trainer(MiniBERT(config), (), replace(TrainingConfig(), threads=1, batch_size=4))
    trainer.batches = trainer.objective.batches(corpus, trainer.config)
    steps = trainer.steps()
    next(steps)
    ran = files_run_by(lambda: next(steps))
    assert set(STATIONS[5:]) <= ran
    assert "touches about 50 files" in " ".join(PAGE.split())
    assert 46 <= len(ran) <= 54, sorted(ran)


def test_the_walk_of_one_batch_names_the_files_that_prepare_a_corpus(corpus, tmp_path):
    (tmp_path / "text.txt").write_text("A cat sat on its mat. It looked away.\n\nAnd who ran?")
    ran = files_run_by(lambda: prepare([str(tmp_path / "text.txt")], corpus.tokenizer, tmp_path / "made", workers=1))
    assert set(STATIONS[:5]) <= ran
