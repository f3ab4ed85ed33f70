"""Hand-made data for each task, learned in seconds, and an untrained model."""

import json

import numpy as np
import pytest
from task_files import CONFIG, WORDS

from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.text.vocabulary import SPECIAL_TOKENS


@pytest.fixture(scope="session")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="session")
def data(tmp_path_factory, tokenizer):
    folder, rng = tmp_path_factory.mktemp("tasks"), np.random.default_rng(0)
    fill = ["film", "plot", "a", "the", "was"]

    def text(word: str) -> str:
        return " ".join(rng.permutation([word, *rng.choice(fill, 3)]))

    for name, n in (("train", 120), ("dev", 40)):
        rows = [(text(word), label) for word, label in [("good", "pos"), ("bad", "neg")] * (n // 2)]
        (folder / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows))
        kinds = [("good", "paris"), ("bad", "paris"), ("good", "paris"), ("good", "london")] * (n // 4)
        pairs = [(text(a), text(b), "both" if (a, b) == ("good", "paris") else "other") for a, b in kinds]
        (folder / f"{name}.pairs.tsv").write_text(
            "sentence1\tsentence2\tlabel\n" + "".join("\t".join(row) + "\n" for row in pairs))
        sentences = []
        for _ in range(n):
            person, place = rng.choice(["anna", "film"]), rng.choice(["paris", "london"])
            sentences.append(f"{person} {'B-PER' if person == 'anna' else 'O'}\nlives O\nin O\n{place} B-LOC\n. O\n")
        (folder / f"{name}.conll").write_text("\n".join(sentences))
        questions = [{"id": i, "question": "where lives anna", "answer": place,
                      "context": f"{text('film')}. Anna lives in {place}. {text('plot')}. {text('plot')}."}
                     for i, place in enumerate(rng.choice(["Paris", "London"], n))]
        (folder / f"{name}.json").write_text(json.dumps(questions))
    MiniBERT(CONFIG, seed=0).save(folder / "model")
    tokenizer.save(folder / "model")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
