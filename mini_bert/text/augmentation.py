"""More text from little, for a teacher to label: words are hidden, and parts are taken alone (Tang et al. 2019).

    each word becomes [MASK] with probability 0.1; then, with probability 0.25, an n-gram of the text, n = 1 ... 5,
    stands for the whole

The paper also replaces words by others of the same part of speech, which needs a tagger, and is left out here. The
draws are keyed by the seed and the number of the text.
"""

from collections.abc import Sequence

import numpy as np

from ..randomness import generator

MASKED, N_GRAM, LONGEST = 0.1, 0.25, 5
MASK = "[MASK]"               # a tokenizer's `with_mask` puts its own name in its place


def augmented(texts: Sequence[str], times: int, seed: int) -> list[list[str]]:
    """For each text up to `times` others made from it, without repetitions and without the text itself."""
    found = []
    for number, text in enumerate(texts):
        rng, words = generator(seed, "augment", number), text.split()
        made = dict.fromkeys(_one(words, rng) for _ in range(times) if words)
        made.pop(" ".join(words), None)
        found.append(list(made))
    return found


def _one(words: Sequence[str], rng: np.random.Generator) -> str:
    hidden = rng.random(len(words)) < MASKED
    made = [MASK if gone else word for word, gone in zip(words, hidden.tolist(), strict=True)]
    if rng.random() < N_GRAM:
        n = min(int(rng.integers(1, LONGEST + 1)), len(made))
        start = int(rng.integers(len(made) - n + 1))
        made = made[start : start + n]
    return " ".join(made)
