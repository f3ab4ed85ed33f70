"""A run of eight steps with three snapshots, and a folder of tasks in its words."""

import json
from pathlib import Path

import numpy as np

from mini_bert import ModelConfig, WordPieceTokenizer
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import start_run

NOUNS, VERBS = ["dog", "cat", "king", "queen"], ["runs", "run", "sees", "see"]
WORDS = [*NOUNS, *VERBS, "the", "a", "in", "."]


def make_run(folder: Path, **settings) -> Path:
    rng = np.random.default_rng(0)
    text = "\n\n".join(" ".join(f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} a {rng.choice(NOUNS)} ."
                                for _ in range(6)) for _ in range(40))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", heldout=0.2, workers=1)
    model = ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=16, max_seq_length=24,
                        vocab_size=len(tokenizer))
    training = TrainingConfig(**{"steps": 8, "batch_size": 4, "learning_rate": 1e-2, "warmup_steps": 1, "threads": 1,
                                 "eval_every": 4, "eval_sequences": 16, "keep_checkpoints": 1, "snapshots": 3}
                              | settings)
    start_run(model, training, folder / "corpus", folder / "run").train()
    return folder / "run"


def make_tasks(root: Path) -> Path:
    rng = np.random.default_rng(1)
    for name in ("bank", "blimp", "agreement"):
        (root / name).mkdir(parents=True)
    for split, count in (("train", 30), ("dev", 10), ("test", 10)):
        sentences = []
        for _ in range(count):
            rows = [("the", "DET", 2, "det"), (rng.choice(NOUNS), "NOUN", 3, "nsubj"),
                    (rng.choice(VERBS), "VERB", 0, "root"), ("a", "DET", 5, "det"),
                    (rng.choice(NOUNS), "NOUN", 3, "obj"), (".", "PUNCT", 3, "punct")]
            sentences.append("".join(f"{i}\t{word}\t_\t{tag}\t_\t_\t{above}\t{relation}\t_\t_\n"
                                     for i, (word, tag, above, relation) in enumerate(rows, 1)) + "\n")
        (root / "bank" / f"en-ud-{split}.conllu").write_text("".join(sentences))
    for paradigm, term, bad in (("agree_1", "subject_verb_agreement", "the {} run ."),
                                ("order_1", "order", "{} the runs .")):
        pairs = [{"sentence_good": f"the {noun} runs .", "sentence_bad": bad.format(noun), "UID": paradigm,
                  "linguistics_term": term, "field": "syntax"} for noun in NOUNS]
        (root / "blimp" / f"{paradigm}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (root / "agreement" / "verbs.text").write_text("".join(f"the {noun} runs a {noun} . <eos>\n" for noun in NOUNS))
    (root / "agreement" / "verbs.gold").write_text("".join(f"2\truns\trun\t{i % 2}\n" for i in range(4)))
    return root
