"""Strings of all scripts, made to be where tokenizers are most likely to differ; and lines of natural text."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.unicode_tables import COMBINING, DECOMPOSED, STANDING

DATA = Path(__file__).parents[2].parent / "shared" / "data"
WORDS = ["the", "of", "and", "a", "unaffable", "unbelievably", "Tokenization", "preprocessing", "don't", "it's",
         "O'Neill", "e.g.", "U.S.A.", "BERT", "Mini-BERT", "iPhone", "McDonald", "3.14159", "1,000,000", "2024-02-29",
         "foo_bar", "snake_case", "a@b.org", "http://x.y/z?q=1", "naïve", "café", "Ångström", "Tübingen", "Dvořák",
         "Đặng", "łódź", "façade", "œuvre", "Ærø", "straße", "ﬁnance", "½", "²", "℃", "№"]
EMOJI = ["😀", "👩\u200d💻", "👨\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇩🇪", "👍🏽", "❤\ufe0f",
         "☺\ufe0e", "1\ufe0f\u20e3", "#\u20e3", "🤷🏿\u200d♀\ufe0f",
         "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\u200d", "\ufe0f"]
SPACES = (" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f"
          "\u3000")
INVISIBLE = ("\x00\x01\x07\x08\x0e\x1b\x7f\x80\x9f\xad\u061c\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069"
             "\ufeff\ufff9\ufffc\ufffd")
CASES = ["İ", "ı", "I", "i", "ß", "ẞ", "Σ", "ς", "σ", "ΟΔΟΣ", "ΑΣ'", "ǅ", "ǆ", "ŉ", "ﬁ", "ﬀ", "\u212a", "\u212b",
         "\u2126", "ſ", "ᾈ", "ᾳ", "ᏸ", "Ꮿ", "Ⴀ", "ა", "Ა", "𐐀", "𞤀", "Ⓐ", "Ⅷ", "i\u0307", "İstanbul", "DİYARBAKIR",
         "GROẞ"]
SPECIAL = (*SPECIAL_TOKENS, "[mask]", "[Mask]", "[ MASK ]", "[MASK", "MASK]", "[[MASK]]", "x[SEP]y", "[CLS][CLS]",
           "[MA\u0301SK]", "[M\u200bASK]", "[UNK]s", "##ing", "[unused1]", "##[SEP]")


def code_points(*ranges: tuple[int, int]) -> Callable[[random.Random], str]:
    """A maker of runs of characters from these ranges, bounds included."""
    def make(rng: random.Random) -> str:
        low, high = rng.choice(ranges)
        return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))
    return make


def ascii_word(rng: random.Random) -> str:
    word = "".join(rng.choices("etaoinshrdlucmfwypvbgkjqxz", range(26, 0, -1), k=rng.randint(1, 12)))
    return rng.choice((word, word, word.upper(), word.title(), word + str(rng.randint(0, 2030))))


def accented(rng: random.Random) -> str:
    marks = ((0x300, 0x36F), (0x300, 0x36F), (0x483, 0x489), (0x591, 0x5C7), (0x1AB0, 0x1AFF), (0x20D0, 0x20F0),
             (0xFE20, 0xFE2F), (0x1D165, 0x1D172), (0x302A, 0x302F), (0x16FF0, 0x16FF1), (0x1CE1, 0x1CF9))
    return "".join(letter + "".join(chr(rng.randint(*rng.choice(marks))) for _ in range(rng.choice((0, 1, 1, 2, 4))))
                   for letter in rng.choice(WORDS))


def long_word(rng: random.Random) -> str:
    letter = rng.choice("aaxXéİß가क\u0301😀")
    return letter * rng.choice((49, 50, 51, 99, 100, 101, 102, 250))


def punctuation(rng: random.Random) -> str:
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡§«¶·»¿–—‘’“”„…†‰′⁇、。「」！（），：？｛｝～؟،।॥᠀⸮𐄀٪$£€¥₿©®°±×÷¬"
    return "".join(rng.choice(marks) for _ in range(rng.randint(1, 7)))


def any_character(rng: random.Random) -> str:
    while 0xD800 <= (code := rng.randrange(0x110000)) <= 0xDFFF:
        pass
    return chr(code)


MAKERS: list[Callable[[random.Random], str]] = [
    ascii_word, ascii_word, ascii_word, accented, punctuation, any_character,
    lambda rng: rng.choice(WORDS),
    lambda rng: rng.choice(EMOJI),
    lambda rng: rng.choice(CASES),
    lambda rng: rng.choice(SPECIAL),
    lambda rng: "".join(rng.choices(SPACES, k=rng.randint(1, 3))),
    lambda rng: rng.choice(ascii_word(rng)) + rng.choice(INVISIBLE) + ascii_word(rng),
    code_points((0x590, 0x5FF), (0x600, 0x6FF), (0x700, 0x74F), (0x8A0, 0x8FF), (0xFB1D, 0xFDFF), (0xFE70, 0xFEFF)),
    code_points((0x4E00, 0x9FFF), (0x3040, 0x30FF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF),
                (0xFF01, 0xFFEE), (0x2F800, 0x2FA1F)),
    code_points((0xAC00, 0xD7A3), (0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xD7B0, 0xD7FB)),
    code_points((0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xD00, 0xD7F), (0xE00, 0xE7F), (0xF00, 0xFDA),
                (0x1000, 0x109F), (0x1780, 0x17FF)),
    code_points((0x80, 0x24F), (0x370, 0x52F), (0x1E00, 0x1FFF), (0x10A0, 0x10FF), (0x1C80, 0x1C8F), (0x2C00, 0x2D2F)),
    code_points((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)),
    code_points((0xFFFE, 0xFFFF), (0x1FFFE, 0x1FFFF), (0x378, 0x379), (0x40000, 0x4FFFF), (0xE0000, 0xE01EF)),
    code_points((0x10000, 0x1FFFF), (0x1D400, 0x1D7FF), (0x1F000, 0x1FAFF), (0x10400, 0x104FF), (0x11000, 0x11FFF)),
]


def strings(count: int, seed: int) -> Iterator[str]:
    """Strings of one to six parts, each of any kind, joined by nothing, a space or something like one."""
    rng = random.Random(seed)
    for number in range(count):
        text = long_word(rng) if number % 50 == 0 else ""
        for _ in range(rng.randint(1, 6)):
            text += rng.choice(("", " ", " ", rng.choice(SPACES))) + rng.choice(MAKERS)(rng)
        yield text


def runs_of_marks(count: int, seed: int) -> Iterator[str]:
    """Strings in which most characters are marks that NFD sorts; many of them stay when accents are stripped."""
    kinds = [list(STANDING), list(STANDING), list(COMBINING), list(COMBINING),
             [letter for letter in DECOMPOSED if not "가" <= letter <= "힣"],
             [*"aAéΣ가豈日!, .", "İ", "\x00", "\xad", "\u200b", "\u2000", "\U00011938"]]
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randint(1, 9)))


def lines(pattern: str, prefix: str = "") -> list[str]:
    """The lines of the shared files that begin with `prefix`, without it."""
    files = sorted(DATA.glob(pattern))
    if not files:
        pytest.skip(f"no text to compare on: looked for ../shared/data/{pattern}, seen from the repository's root")
    return [line.removeprefix(prefix) for file in files for line in file.read_text("utf-8").split("\n")
            if line and line.startswith(prefix)]
