"""The masking exercise: what must hold exactly, what holds on average, and the cause of each mistake."""

import pytest

from mini_bert.exercises import Answer, exercise
from mini_bert.exercises.graded.masking import RULES
from mini_bert.exercises.stubs import solution_source

# a change of the solution, and the rule whose cause comes first
MISTAKES = [
    ("return seen, ids.copy(), chosen", "return seen, seen.copy(), chosen", "targets are the ids"),
    ("ordinary = ~np.isin(ids, SPECIAL)", "ordinary = ids != 0", "specials are never chosen"),
    ("seen[chosen & (lot < 0.8)] = MASK", "seen[(chosen | (lot < 0.01)) & (lot < 0.8)] = MASK",
     "only the chosen change"),
    ("    lot = rng", "    chosen = ordinary & (rng.random(ids.shape) < SHARE)\n    lot = rng",
     "the count in each row"),
    ("return seen, ids.copy(), chosen", "return seen, ids.copy(), seen != ids", "the count in each row"),
    ("rng.integers(len(SPECIAL), vocab_size, ids.shape)", "rng.integers(vocab_size, size=ids.shape)",
     "random tokens are ordinary"),
    ("rng.permutation(places)[:count]", "places[:count]", "every position alike"),
    ("seen[chosen & (lot < 0.8)] = MASK", "seen[chosen] = MASK", "[MASK] in 80 %"),
    ("(lot >= 0.8) & (lot < 0.9)", "(lot >= 0.8)", "unchanged in 10 %"),
    ("rng.integers(len(SPECIAL), vocab_size, ids.shape)", "np.full(ids.shape, rng.integers(5, vocab_size))",
     "the random ones are of all kinds"),
]


def graded(old: str, new: str, seed: int = 0):
    source = solution_source(exercise("masking"))
    assert source.count(old) == 1, old
    return exercise("masking").grade(Answer(source.replace(old, new), "answer.py"), seed)


@pytest.mark.parametrize(("old", "new", "rule"), MISTAKES)
def test_a_mistake_fails_its_rule_and_gets_its_cause(old, new, rule):
    grade = graded(old, new)
    assert not grade.passed
    failed = {row.output for row in grade.rows if not row.passed}
    assert rule in failed
    assert next(one.cause for one in RULES if one.name == rule) in grade.hints


def test_every_rule_but_the_rest_of_the_three_fates_has_its_mistake():
    assert {rule.name for rule in RULES} - {rule for *_, rule in MISTAKES} == {"random in 10 %"}


@pytest.mark.parametrize(("old", "new", "words"), [
    ("lot = rng.random(ids.shape)", "lot = np.random.default_rng().random(ids.shape)", "draw from rng alone"),
    ("seen, chosen = ids.copy()", "seen, chosen = ids", "changes ids in place"),
    ("return seen, ids.copy(), chosen", "return seen, ids.copy(), chosen.astype(int)", "must be an array of booleans"),
    ("return seen, ids.copy(), chosen", "return seen, ids.copy(), chosen[:1]", "of the shape of ids"),
    ("return seen, ids.copy(), chosen", "return seen", "must return seen, targets, chosen"),
])
def test_what_cannot_be_judged_is_told_in_a_sentence(old, new, words):
    assert words in graded(old, new).problem


@pytest.mark.parametrize("seed", range(8))
def test_the_solution_passes_whatever_the_seed(seed):
    assert exercise("masking").grade(Answer(solution_source(exercise("masking")), "answer.py"), seed).passed
