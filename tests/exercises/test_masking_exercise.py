"""The masking exercise: exact rules, statistical rules, and the cause of each mistake."""

import pytest

from mini_bert.exercises import Answer, exercise
from mini_bert.exercises.graded.masking import RULES
from mini_bert.exercises.stubs import solution_source

# a change to the solution, and the rule that it violates
MISTAKES = [
    ("return seen, ids.copy(), chosen", "return seen, seen.copy(), chosen", "targets are the original ids"),
    ("ordinary = ~np.isin(ids, SPECIAL)", "ordinary = ids != 0", "specials are never chosen"),
    ("seen[chosen & (lot < 0.8)] = MASK", "seen[(chosen | (lot < 0.01)) & (lot < 0.8)] = MASK",
     "only the chosen change"),
    ("    lot = rng", "    chosen = ordinary & (rng.random(ids.shape) < SHARE)\n    lot = rng",
     "the number in each row"),
    ("return seen, ids.copy(), chosen", "return seen, ids.copy(), seen != ids", "the number in each row"),
    ("rng.integers(len(SPECIAL), vocab_size, ids.shape)", "rng.integers(vocab_size, size=ids.shape)",
     "random tokens are ordinary"),
    ("rng.permutation(places)[:count]", "places[:count]", "all positions are equally likely"),
    ("seen[chosen & (lot < 0.8)] = MASK", "seen[chosen] = MASK", "[MASK] in 80 %"),
    ("(lot >= 0.8) & (lot < 0.9)", "(lot >= 0.8)", "unchanged in 10 %"),
    ("rng.integers(len(SPECIAL), vocab_size, ids.shape)", "np.full(ids.shape, rng.integers(5, vocab_size))",
     "random tokens are varied"),
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


def test_every_rule_but_the_last_of_the_three_cases_has_a_mistake():
    assert {rule.name for rule in RULES} - {rule for *_, rule in MISTAKES} == {"random in 10 %"}


@pytest.mark.parametrize(("old", "new", "words"), [
    ("lot = rng.random(ids.shape)", "lot = np.random.default_rng().random(ids.shape)", "draw only from rng"),
    ("seen, chosen = ids.copy()", "seen, chosen = ids", "changes ids in place"),
    ("return seen, ids.copy(), chosen", "return seen, ids.copy(), chosen.astype(int)", "must be an array of booleans"),
    ("return seen, ids.copy(), chosen", "return seen, ids.copy(), chosen[:1]", "of the shape of ids"),
    ("return seen, ids.copy(), chosen", "return seen", "must return seen, targets, chosen"),
])
def test_an_answer_that_cannot_be_graded_gets_a_problem(old, new, words):
    assert words in graded(old, new).problem


def test_the_solution_passes_with_every_seed():
    answer = Answer(solution_source(exercise("masking")), "answer.py")
    assert [seed for seed in range(8) if not exercise("masking").grade(answer, seed).passed] == []
