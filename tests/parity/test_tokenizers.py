"""Live comparison with transformers' BERT tokenizer; run by `make parity` in an environment of its own."""

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.normalise import normaliser
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.text.wordpiece.unicode_tables import COMBINING, DECOMPOSED, STANDING

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

DATA = Path(__file__).parents[2].parent / "shared" / "data"


# ---------------------------------------------------------------- strings

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


# ---------------------------------------------------------------- comparison

def reference(directory: Path) -> Any:
    """transformers' tokenizer of a directory, without the padding and truncation that its file asks for."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    return tokenizer


@pytest.fixture(scope="module")
def theirs(minilm: Path) -> Any:
    return reference(minilm)


@pytest.fixture(scope="module")
def ours(minilm: Path) -> WordPieceTokenizer:
    return WordPieceTokenizer.load(minilm)


def assert_equal(ours: WordPieceTokenizer, theirs: Any, texts: Iterable[str]) -> None:
    """Ids, offsets and word ids of all texts; the shortest texts that differ are shown."""
    texts = list(texts)
    assert texts
    differ = []
    for start in range(0, len(texts), 5000):
        part = texts[start : start + 5000]
        for text, expected in zip(part, theirs.backend_tokenizer.encode_batch(part), strict=True):
            found = ours.align(text)
            what = [name for name, equal in (
                ("align().ids", found.ids == expected.ids),
                ("encode()", ours.encode(text) == expected.ids),
                ("tokens", found.tokens == expected.tokens),
                ("offsets", found.offsets == expected.offsets),
                ("word_ids", found.word_ids == expected.word_ids)) if not equal]
            if what:
                differ.append(f"{', '.join(what)} of {text!a}")
    shown = "\n".join(sorted(differ, key=len)[:10])
    assert not differ, f"{len(differ)} of {len(texts)} texts differ:\n{shown}"


def lines(pattern: str, prefix: str = "") -> list[str]:
    """The lines of the shared files that begin with `prefix`, without it."""
    files = sorted(DATA.glob(pattern))
    if not files:
        pytest.skip(f"no text to compare on: looked for ../shared/data/{pattern}, seen from the repository's root")
    return [line.removeprefix(prefix) for file in files for line in file.read_text("utf-8").split("\n")
            if line and line.startswith(prefix)]


# ---------------------------------------------------------------- the same ids

def test_a_hundred_thousand_unicode_strings_give_the_same_ids_offsets_and_words(ours, theirs):
    assert_equal(ours, theirs, strings(100_000, seed=0))


def test_every_code_point_gives_the_same_ids_offsets_and_words(ours, theirs):
    # of planes 4 to 13, which have no characters, and of private use, every hundredth
    codes = [code for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF
             and (code < 0x40000 or 0xE0000 <= code < 0xE1000 or code % 100 == 0)]
    assert_equal(ours, theirs, ("".join(f"{chr(code)} a{chr(code)}b " for code in codes[start : start + 64])
                                for start in range(0, len(codes), 64)))


@pytest.mark.parametrize(("lowercase", "strip_accents"), [(True, True), (True, False), (False, True), (False, False)])
def test_every_code_point_is_normalised_alike(lowercase, strip_accents):
    normalise = tokenizers.normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents).normalize_str
    table = normaliser(lowercase, strip_accents)
    differ = [f"U+{code:04X}" for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF
              and table[code].replace(" ", "") != normalise(chr(code)).replace(" ", "")]
    assert not differ, f"{len(differ)} code points: {' '.join(differ)}"


@pytest.mark.parametrize(("lowercase", "strip_accents"), list(product([True, False], [None, True, False])))
def test_runs_of_marks_give_the_same_ids_offsets_and_words(lowercase, strip_accents):
    normalise = tokenizers.normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents).normalize_str
    letters = sorted({letter for text in runs_of_marks(10_000, seed=8) for letter in normalise(text)} - {" "})
    pieces = [*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]        # so that their order is seen
    theirs = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, do_lower_case=lowercase,
                                        strip_accents=strip_accents)
    assert_equal(WordPieceTokenizer(pieces, lowercase, strip_accents), theirs, runs_of_marks(10_000, seed=9))


def test_halves_of_surrogate_pairs_are_left_out(ours, theirs):
    rng = random.Random(1)
    for text in strings(5000, seed=1):
        place = rng.randint(0, len(text))
        broken = text[:place] + rng.choice("\ud800\udbff\udc00\udfff") + text[place:]
        if any(text.count(token) != broken.count(token) for token in SPECIAL_TOKENS):
            continue                                        # with something inside it is no [MASK] any more
        assert ours.encode(broken) == ours.align(broken).ids == theirs.backend_tokenizer.encode(text).ids, ascii(broken)


@pytest.mark.parametrize("name", ["wiki", "books"])
def test_development_text_gives_the_same_ids_offsets_and_words(ours, theirs, name):
    assert_equal(ours, theirs, lines(f"pretrain/{name}.dev.txt"))


@pytest.mark.parametrize("name", ["ud_ewt", "ud_gum"])
def test_treebank_text_gives_the_same_ids_offsets_and_words(ours, theirs, name):
    assert_equal(ours, theirs, lines(f"eval/{name}/*.conllu", "# text = "))


def test_pieces_are_the_same(ours, theirs):
    for text in strings(2000, seed=2):
        assert ours.tokenize(text) == theirs.tokenize(text), ascii(text)


# ---------------------------------------------------------------- the same files

KINDS = pytest.mark.parametrize(("lowercase", "strip_accents"),
                                [(True, None), (False, None), (True, False), (False, True)])


def learned(lowercase: bool, strip_accents: bool | None) -> WordPieceTokenizer:
    """A tokenizer whose vocabulary has pieces in many scripts."""
    words = count_words(strings(5000, seed=3), lowercase, strip_accents)
    return WordPieceTokenizer(learn_vocabulary(words, 12_000, alphabet_limit=4000), lowercase, strip_accents)


@KINDS
def test_transformers_opens_what_we_save(tmp_path, lowercase, strip_accents):
    ours = learned(lowercase, strip_accents)
    ours.save(tmp_path)
    assert_equal(ours, reference(tmp_path), strings(20_000, seed=4))
    again = WordPieceTokenizer.load(tmp_path)
    assert (again.lowercase, again.strip_accents) == (ours.lowercase, ours.strip_accents)


@KINDS
def test_transformers_opens_the_vocabulary_file_and_settings_alone(tmp_path, lowercase, strip_accents):
    ours = learned(lowercase, strip_accents)
    ours.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert_equal(ours, reference(tmp_path), strings(5000, seed=5))


@KINDS
def test_we_open_what_transformers_saves(tmp_path, lowercase, strip_accents):
    made = transformers.BertTokenizer(vocab=dict(learned(lowercase, strip_accents).vocabulary.ids),
                                      do_lower_case=lowercase, strip_accents=strip_accents)
    made.save_pretrained(tmp_path)
    ours = WordPieceTokenizer.load(tmp_path)
    assert ours.lowercase == lowercase
    assert_equal(ours, made, strings(5000, seed=6))


def test_we_open_the_real_tokenizer_that_transformers_saves_again(tmp_path, ours, theirs):
    theirs.save_pretrained(tmp_path)
    again = WordPieceTokenizer.load(tmp_path)
    assert again.vocabulary.pieces == ours.vocabulary.pieces
    assert_equal(again, theirs, strings(5000, seed=7))


# ---------------------------------------------------------------- the same sequences

SENTENCES = [
    "The cat sat on the mat.",
    "BERT is a bidirectional encoder that was pre-trained on books and on the English Wikipedia.",
    "Yes.",
    "",
    "Numbers like 3.14159, names like Tübingen, and 日本 too.",
    "unaffable unaffable unaffable unaffable",
]


def test_a_text_is_cut_alike(ours, theirs):
    for text, max_length in product(SENTENCES, [None, *range(2, 30)]):
        expected = theirs(text, truncation=max_length is not None, max_length=max_length)["input_ids"]
        assert ours.encode(text, max_length=max_length) == expected, (text, max_length)
        assert ours.align(text, max_length=max_length).ids == expected, (text, max_length)


def test_a_pair_is_cut_alike(ours, theirs):
    differ = []
    for first, second, max_length in product(SENTENCES, SENTENCES, [None, *range(3, 50)]):
        cut = "longest_first" if max_length is not None else False
        # as a batch of one, because outside of a batch an empty second text counts as none
        expected = theirs([first], [second], truncation=cut, max_length=max_length)
        if ours.encode_pair(first, second, max_length=max_length) != (expected["input_ids"][0],
                                                                       expected["token_type_ids"][0]):
            differ.append(f"{first!r}, {second!r}, max_length={max_length}")
    shown = "\n".join(sorted(differ, key=len)[:5])
    assert not differ, f"{len(differ)} pairs differ:\n{shown}"


@pytest.mark.parametrize("max_length", [None, 3, 8, 15, 64])
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
def test_a_batch_is_padded_alike(ours, theirs, pairs, max_length):
    texts = list(zip(SENTENCES, reversed(SENTENCES), strict=True)) if pairs else SENTENCES
    expected = theirs(texts, padding=True, truncation=max_length is not None, max_length=max_length,
                      return_tensors="np")
    found = ours.encode_batch(texts, max_length=max_length)
    assert np.array_equal(found.input_ids, expected["input_ids"])
    assert np.array_equal(found.attention_mask, expected["attention_mask"])
    assert np.array_equal(found.token_types, expected["token_type_ids"])


@pytest.mark.parametrize("text", [
    "The cat sat on the mat.",
    "She didn't pay $3.50, did she?",
    "It's 10:30; we're late (again)!",
    "Unbelievably, the 1,000 tokenizers [of 2024] agreed: 99.5% of it.",
])
def test_decoding_gives_the_text_back(ours, theirs, text):
    ids = ours.encode(text)
    assert ids == theirs(text)["input_ids"]
    assert ours.decode(ids, skip_special_tokens=True) == text.lower()
    # they leave more spaces; apart from those, nothing differs
    expected = theirs.decode(ids, skip_special_tokens=True)
    assert ours.decode(ids, skip_special_tokens=True).replace(" ", "") == expected.replace(" ", "")


# ---------------------------------------------------------------- learning

def test_a_learned_vocabulary_needs_no_more_tokens_than_theirs():
    text, other = lines("pretrain/wiki.dev.txt"), lines("pretrain/books.dev.txt")
    ours = WordPieceTokenizer(learn_vocabulary(count_words(text), 2000))
    trained = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = tokenizers.normalizers.BertNormalizer()
    trained.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trained.train_from_iterator(text, tokenizers.trainers.WordPieceTrainer(
        vocab_size=2000, min_frequency=2, limit_alphabet=1000, special_tokens=list(SPECIAL_TOKENS),
        show_progress=False))
    theirs = WordPieceTokenizer(sorted(trained.get_vocab(), key=trained.get_vocab().get))
    counts = [sum(len(tokenizer.ids(line)) for line in other) for tokenizer in (ours, theirs)]
    print(f"{counts[0]} tokens, with theirs {counts[1]}: {counts[0] / counts[1]:.4f}")
    assert len(ours) == len(theirs) == 2000
    assert counts[0] <= 1.01 * counts[1]
