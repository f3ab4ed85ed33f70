"""Sentence vectors of a real model beside transformers' own."""

import numpy as np
import pytest

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.inference.embed import embed, similar

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

TEXTS = ["A cat sleeps on the sofa.", "The stock market fell sharply on Monday.", "A kitten is napping.", "Rain."]


def test_sentence_vectors_are_the_mean_of_transformers_hidden_states(minilm):
    model, tokenizer = mini_bert.load(minilm), WordPieceTokenizer.load(minilm)
    ours = embed(model, tokenizer, TEXTS, batch_size=3)
    encoded = transformers.AutoTokenizer.from_pretrained(minilm)(TEXTS, padding=True, return_tensors="pt")
    hidden = transformers.AutoModel.from_pretrained(minilm, dtype=torch.float32).eval()(**encoded).last_hidden_state
    mask = encoded["attention_mask"][..., None]
    theirs = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1)).detach().numpy()
    difference = np.abs(ours - theirs).max()
    print(f"vectors differ by at most {difference:.1e}")
    assert difference <= 1e-5
    found = similar(model, tokenizer, "Where is the cat?", TEXTS, top=2)
    assert {neighbour.number for neighbour in found} == {0, 2}
