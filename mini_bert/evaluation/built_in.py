"""Small English data sets for probes that are called without data, as `probe_syntactic_knowledge(model)` is.

They give a first impression in seconds. For figures to report, use the published sets: BLiMP, LAMA, SimLex-999.
"""

from itertools import permutations

from .formats.lama import Fact
from .formats.minimal_pairs import MinimalPair
from .formats.words import Analogies, Similarity

SENTENCES = (
    "The old man walked slowly along the river to the village.",
    "She bought bread, milk and three apples at the market.",
    "In winter the lake is covered with thick ice.",
    "The company sold its factory to a group of workers.",
    "Two ships left the harbour before the storm began.",
    "He wrote a long letter to his brother, but never sent it.",
    "The film was praised by the critics and ignored by everyone else.",
    "Most of the houses on this street were built a century ago.",
    "A small bird was singing in the garden behind the church.",
    "The army crossed the border during the night.",
    "Children under ten may enter the museum without paying.",
    "The teacher explained the problem once more, and this time we understood.",
    "Water boils at a lower temperature on high mountains.",
    "Their first album sold more than a million copies.",
    "The king had no son, so the crown passed to his nephew.",
    "You can reach the island by train or by boat.",
    "The court decided that the law was not valid.",
    "After dinner they sat by the fire and told stories.",
    "The bridge was closed for a year while it was repaired.",
    "Scientists have found a new species of fish in the deep sea.",
)

# singular and plural
_NOUNS = (("dog", "dogs"), ("king", "kings"), ("house", "houses"), ("book", "books"), ("tree", "trees"),
          ("river", "rivers"), ("student", "students"), ("player", "players"), ("city", "cities"),
          ("child", "children"))
_VERBS = (("is", "are"), ("was", "were"), ("has been", "have been"))
# a subject, its reflexive pronoun, and another one
_REFLEXIVES = (("the man", "himself", "themselves"), ("the woman", "herself", "themselves"),
               ("the king", "himself", "herself"), ("the queen", "herself", "himself"),
               ("the boys", "themselves", "himself"), ("the girls", "themselves", "herself"),
               ("the men", "themselves", "himself"), ("the women", "themselves", "herself"))


def built_in_minimal_pairs() -> list[MinimalPair]:
    """Agreement of verbs with their subjects, also across a noun of the other number; of determiners; of reflexives."""
    pairs: list[MinimalPair] = []

    def add(phenomenon: str, paradigm: str, good: str, bad: str) -> None:
        pairs.append(MinimalPair(f"{good.capitalize()}.", f"{bad.capitalize()}.", paradigm, phenomenon, "syntax"))

    for nouns in _NOUNS:
        for number, noun in enumerate(nouns):
            other = ("hills", "hill")[number]
            for verbs in _VERBS:
                good, bad = verbs[number], verbs[1 - number]
                add("subject-verb agreement", "simple", f"the {noun} {good} very old", f"the {noun} {bad} very old")
                add("subject-verb agreement", "across a noun", f"the {noun} near the {other} {good} very old",
                    f"the {noun} near the {other} {bad} very old")
            for words in (("this", "these"), ("that", "those")):
                add("determiner-noun agreement", "determiner and noun", f"she saw {words[number]} {noun} again",
                    f"she saw {words[1 - number]} {noun} again")
    for subject, right, wrong in _REFLEXIVES:
        for verb in ("saw", "killed", "called"):
            add("reflexives", "reflexives", f"{subject} {verb} {right}", f"{subject} {verb} {wrong}")
    return pairs


_FACTS = {
    "capital": ("The capital of {} is [MASK] .", """France Paris|Germany Berlin|England London|Italy Rome|Spain Madrid
Russia Moscow|Austria Vienna|Greece Athens|Egypt Cairo|Japan Tokyo|China Beijing|Poland Warsaw|Portugal Lisbon
Ireland Dublin|Sweden Stockholm|Norway Oslo|Cuba Havana|Peru Lima|Iran Tehran|Iraq Baghdad"""),
    "language": ("The official language of {} is [MASK] .", """France French|Germany German|England English
Italy Italian|Spain Spanish|Russia Russian|Greece Greek|Egypt Arabic|Japan Japanese|China Chinese|Poland Polish
Portugal Portuguese|Sweden Swedish|Mexico Spanish|Brazil Portuguese|Austria German|Australia English|Iraq Arabic"""),
    "colour": ("The color of {} is [MASK] .", """snow white|milk white|blood red|grass green|coal black|gold yellow
the sky blue|the night black|leaves green|the sun yellow""")}


def built_in_facts() -> dict[str, list[Fact]]:
    """Capitals, languages and colours, each prompt with its negation."""
    return {relation: [Fact(relation, subject, answer, prompt.format(subject),
                            prompt.replace(" is ", " is not ").format(subject))
                       for subject, answer in (entry.rsplit(" ", 1) for entry in _entries(table))]
            for relation, (prompt, table) in _FACTS.items()}


_SIMILAR = {
    2.0: """big large|small little|begin start|road street|car automobile|doctor physician|boat ship|happy glad
house home|quick fast|stone rock|student pupil|king monarch|kill murder|rich wealthy|city town|shout cry""",
    1.0: """dog cat|horse cow|red green|bread butter|river lake|father mother|sword knife|church priest|school teacher
moon sun|gold silver|summer winter|hand foot|army soldier|sea fish|music song|book page|king crown""",
    0.0: """dog music|horse letter|red teacher|bread army|river school|father moon|sword milk|church fish|king butter
moon paper|gold song|summer knife|hand lake|army apple|sea page|music stone|book cow|street cat"""}

_ANALOGIES = {
    "family": """man woman|king queen|boy girl|father mother|brother sister|son daughter|prince princess
husband wife""",
    "opposites": """good bad|high low|hot cold|old new|large small|rich poor|long short|strong weak""",
    "plural": """dog dogs|king kings|book books|tree trees|river rivers|city cities|car cars|house houses""",
    "past tense": """walk walked|call called|play played|work worked|help helped|open opened|move moved|kill killed""",
    "capitals": """France Paris|Germany Berlin|England London|Italy Rome|Spain Madrid|Russia Moscow|Egypt Cairo
Japan Tokyo"""}


def built_in_words() -> list[Similarity | Analogies]:
    """Pairs in three grades, 2 for the same meaning, 1 for a related and 0 for an unrelated one; and analogies."""
    similarity, analogies = Similarity("built-in pairs", [], []), Analogies("built-in analogies", [], [])
    for grade, table in _SIMILAR.items():
        for a, b in map(str.split, _entries(table)):
            similarity.pairs.append((a, b))
            similarity.scores.append(grade)
    for section, table in _ANALOGIES.items():
        for (a, b), (c, d) in permutations(map(str.split, _entries(table)), 2):
            analogies.questions.append((a, b, c, d))
            analogies.sections.append(section)
    return [similarity, analogies]


def _entries(table: str) -> list[str]:
    return table.replace("\n", "|").split("|")
