"""The structural probe on hand-made trees, and on vectors that encode a tree."""

from itertools import pairwise

import numpy as np
import pytest

from mini_bert.errors import InputError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.probes.structural import (
    StructuralRecipe,
    distance_forward,
    gradient_checks,
    l1_loss,
    probe_structure,
    train_structural,
)
from mini_bert.evaluation.probes.trees import (
    by_sentence_length,
    linear_chain,
    spanning_edges,
    structural_scores,
    tree_distances,
)
from mini_bert.evaluation.ranking import ranks, spearman

HEADS = (2, 0, 5, 5, 2, 2)            # 2 is the root; 1, 5 and 6 below it, 3 and 4 below 5


def random_sentence(rng, n):
    """A random tree over words in random order."""
    order = rng.permutation(n)
    heads = np.zeros(n, int)
    for i in range(1, n):
        heads[order[i]] = order[rng.integers(i)] + 1
    return Sentence(("w",) * n, ("NOUN",) * n, tuple(heads.tolist()), ("dep",) * n)


def tree_vectors(sentence):
    """One dimension per edge, 1 for the words below it: squared distances and norms equal those of the tree."""
    n = len(sentence.words)
    made = np.zeros((n, 16), np.float32)
    for i in range(n):
        here = i
        while sentence.heads[here]:
            made[i, here] = 1
            here = sentence.heads[here] - 1
    return made


@pytest.mark.parametrize("result", gradient_checks(0), ids=lambda r: r.case)
def test_gradients_match_numerical_derivatives(result):
    assert result.passed, result.error


def test_distances_and_depths_of_a_tree():
    distances, depths = tree_distances(HEADS)
    assert depths.tolist() == [1, 0, 2, 2, 1, 1]
    assert distances.tolist() == [[0, 1, 3, 3, 2, 2], [1, 0, 2, 2, 1, 1], [3, 2, 0, 2, 1, 3], [3, 2, 2, 0, 1, 3],
                                  [2, 1, 1, 1, 0, 2], [2, 1, 3, 3, 2, 0]]


def test_the_spanning_tree_of_a_trees_distances_is_the_tree(rng):
    for n in (1, 2, 7, 15):
        sentences = [random_sentence(rng, n) for _ in range(5)]
        group = by_sentence_length(sentences)[0]
        edges = spanning_edges(group.distances, group.words)
        for sentence, found in zip(sentences, edges, strict=True):
            expected = {tuple(sorted((i, head - 1))) for i, head in enumerate(sentence.heads) if head}
            assert {(int(i), int(j)) for i, j in zip(*np.nonzero(found), strict=True) if i < j} == expected


def test_the_spanning_tree_has_minimum_weight(rng):
    weights = rng.random((1, 4, 4))
    weights = weights + weights.transpose(0, 2, 1)
    found = spanning_edges(weights, np.ones((1, 4), bool))
    pairs = [(i, j) for i in range(4) for j in range(i)]
    lightest = np.inf
    for a in range(6):                    # every three edges that connect four words are a tree
        for b in range(a):
            for c in range(b):
                joined = np.eye(4, dtype=bool)
                for e in (a, b, c):
                    joined[pairs[e]] = joined[pairs[e][::-1]] = True
                if np.linalg.matrix_power(joined.astype(int), 4).all():
                    lightest = min(lightest, sum(weights[0][pairs[e]] for e in (a, b, c)))
    assert (weights * found).sum() / 2 == pytest.approx(lightest)


def test_punctuation_is_excluded():
    sentence = Sentence(("a", ",", "b", "c", "."), ("NOUN", "PUNCT", "VERB", "NOUN", "PUNCT"), (3, 1, 0, 3, 3),
                        ("nsubj", "punct", "root", "obj", "punct"))
    group = by_sentence_length([sentence])[0]
    edges = spanning_edges(group.distances, group.words)[0]
    assert not edges[1].any()
    assert not edges[4].any()
    chain = linear_chain([group])
    assert chain.uuas == 1                # a-b and b-c, without the comma
    assert chain.root_accuracy == 0


def test_ranks_and_their_correlation():
    assert ranks(np.array([[3.0, 1.0, 3.0, 2.0]])).tolist() == [[3.5, 1, 3.5, 2]]
    a = np.array([1.0, 2, 3, 4, 5])
    assert spearman(a, a**3) == pytest.approx(1)
    assert spearman(a, -a) == pytest.approx(-1)
    assert spearman(a, np.array([2.0, 1, 4, 3, 5])) == pytest.approx(1 - 6 * 4 / (5 * 24))    # the textbook's formula
    assert spearman(a, np.ones(5)) == 0


def test_the_loss_is_normalised_by_the_squared_length():
    d, gold = np.full((2, 3, 3), 3.0), np.full((2, 3, 3), 1.0)
    loss, slope = l1_loss(d, gold)
    assert loss == pytest.approx(2 * 2)
    np.testing.assert_allclose(slope, 1 / 9)


def test_perfect_distances_have_perfect_scores(rng):
    trees = by_sentence_length([random_sentence(rng, n) for n in (5, 8, 8, 12)])
    found = structural_scores(trees, [group.distances for group in trees], [group.depths for group in trees])
    assert (found.uuas, found.root_accuracy) == (1, 1)
    assert found.distance_spearman == pytest.approx(1)
    assert found.depth_spearman == pytest.approx(1)
    with pytest.raises(InputError, match="5 to 50 words"):
        structural_scores(by_sentence_length([random_sentence(rng, 3)]), [np.zeros((1, 3, 3))], [np.zeros((1, 3))])


def test_the_probe_finds_an_encoded_tree_and_none_in_noise(rng):
    sentences = [random_sentence(rng, int(n)) for n in rng.integers(6, 13, 400)]
    rotation = np.linalg.qr(rng.standard_normal((16, 16)))[0].astype(np.float32)
    x = np.concatenate([tree_vectors(sentence) for sentence in sentences]) @ rotation
    noise = rng.standard_normal(x.shape).astype(np.float32)
    cuts = [0, 300, 350, 400]
    words = np.cumsum([0, *(len(sentence.words) for sentence in sentences)])
    parts = [slice(words[a], words[b]) for a, b in pairwise(cuts)]
    trees = [by_sentence_length(sentences[a:b]) for a, b in pairwise(cuts)]
    recipe = StructuralRecipe(learning_rate=1e-2, max_epochs=40)

    def figures(vectors, rank):
        (train, dev, test), (a, b, c) = (vectors[part] for part in parts), trees
        return probe_structure(train, a, dev, b, test, c, rank=rank, recipe=recipe)[1]

    good, bad = figures(x, 16), figures(noise, 16)
    assert good.uuas > 0.95
    assert good.distance_spearman > 0.95
    assert good.root_accuracy > 0.9
    assert bad.uuas < 0.5
    assert figures(x, 1).uuas < good.uuas


def test_invalid_structural_probes_are_refused(rng):
    trees = by_sentence_length([random_sentence(rng, 6)])
    x = np.ones((6, 4), np.float32)
    with pytest.raises(InputError, match="rank must be between 1 and 4"):
        train_structural("distance", x, trees, x, trees, rank=5)
    with pytest.raises(InputError, match="distance and depth"):
        train_structural("height", x, trees, x, trees, rank=2)
    with pytest.raises(InputError, match="heads and UPOS"):
        by_sentence_length([Sentence(("a",))])
    assert distance_forward(x[None], np.eye(4, dtype=np.float32))[0].max() == 0
