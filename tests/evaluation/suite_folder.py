"""A small model and a folder of hand-written tasks, for tests of the comprehensive evaluation."""

import json
from pathlib import Path

import numpy as np

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.text.vocabulary import SPECIAL_TOKENS

NOUNS, VERBS = ["dog", "cat", "king", "queen"], ["runs", "run", "sees", "see"]
WORDS = [*NOUNS, *VERBS, "good", "bad", "the", "a", "not", "paris", "rome", "lives", "in", "anna", "who", "where", ".",
         "?"]


def make_model(folder: Path, *, head: bool = True) -> Path:
    config = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, max_seq_length=24,
                         vocab_size=len(SPECIAL_TOKENS) + len(WORDS), **({} if head else {"mlm_head": "none"}))
    MiniBERT(config, seed=1).save(folder)
    WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS]).save(folder)
    return folder


def make_text(path: Path) -> Path:
    rng = np.random.default_rng(0)
    sentences = [f"The {a} {v} a {b} in the {c} ." for a, b, c, v in zip(
        *(rng.choice(NOUNS, 120) for _ in range(3)), rng.choice(VERBS, 120), strict=True)]
    path.write_text("\n".join(" ".join(sentences[i : i + 4]) for i in range(0, 120, 4)) + "\n")
    return path


def make_tasks(root: Path) -> Path:
    rng = np.random.default_rng(1)
    for bank, entities in (("en_a", False), ("en_b", True)):
        (root / bank).mkdir(parents=True)
        for split, count in (("train", 40), ("dev", 12), ("test", 12)):
            lines = ["# global.Entity = GRP-etype"] if entities else []
            for _ in range(count):
                noun, other = rng.choice(NOUNS, 2)
                rows = [("the", "DET", 2, "det"), (noun, "NOUN", 3, "nsubj"), (rng.choice(VERBS), "VERB", 0, "root"),
                        ("a", "DET", 5, "det"), (other, "NOUN", 3, "obj"), (".", "PUNCT", 3, "punct")]
                for i, (word, tag, above, relation) in enumerate(rows, 1):
                    mark = f"Entity=(e{i}-animal)" if entities and word in ("dog", "cat") else "_"
                    lines.append("\t".join([str(i), word, "_", tag, "_", "_", str(above), relation, "_", mark]))
                lines.append("")
            (root / bank / f"{bank}-ud-{split}.conllu").write_text("\n".join(lines) + "\n")
    for folder in ("sst2", "blimp", "agreement", "lama/trex", "wordsim", "squad"):
        (root / folder).mkdir(parents=True)
    for split, count in (("train", 40), ("dev", 20)):
        rows = [f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} {word}\t{label}\n"
                for word, label in [("good", "1"), ("bad", "0")] * (count // 2)]
        (root / "sst2" / f"{split}.tsv").write_text("sentence\tlabel\n" + "".join(rows))
    for paradigm, term in (("agree_1", "agreement"), ("order_1", "order")):
        pairs = [{"sentence_good": f"the {noun} runs .", "sentence_bad": f"the {noun} run ." if term == "agreement"
                  else f"{noun} the runs .", "UID": paradigm, "linguistics_term": term, "field": "syntax"}
                 for noun in NOUNS]
        (root / "blimp" / f"{paradigm}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (root / "agreement" / "verbs.text").write_text("".join(f"the {noun} runs . <eos>\n" for noun in NOUNS))
    (root / "agreement" / "verbs.gold").write_text("".join(f"2\truns\trun\t{i % 2}\n" for i in range(4)))
    facts = [{"sub_label": noun, "obj_label": place, "masked_sentences": [f"{noun} lives in [MASK] ."],
              "masked_negations": [f"{noun} lives not in [MASK] ."]}
             for noun, place in zip(NOUNS, ("paris", "rome") * 2, strict=True)]
    (root / "lama/trex/P1.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    (root / "wordsim/pairs.txt").write_text("".join(f"{a}\t{b}\t{i}\n" for i, (a, b) in enumerate(
        [("dog", "cat"), ("king", "queen"), ("dog", "queen"), ("paris", "rome"), ("good", "bad")])))
    (root / "wordsim/questions.txt").write_text(": things\ndog cat king queen\ngood bad paris rome\n")
    for name, count in (("big", 30), ("small", 10)):
        asked = [{"question": "where lives anna ?", "answer": place, "id": i,
                  "context": f"the {rng.choice(NOUNS)} {name} . anna lives in {place} . {i}"}
                 for i, place in enumerate(rng.choice(["paris", "rome"], count))]
        (root / "squad" / f"{name}.json").write_text(json.dumps(asked))
    return root
