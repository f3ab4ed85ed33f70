"""The tokenizer's specification, example by example; `make parity` compares it with the reference."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert import InputError, VocabularyError
from mini_bert.text import chunk_cache
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from mini_bert.text.wordpiece.normalise import normaliser
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

PIECES = [*SPECIAL_TOKENS, "un", "##aff", "##able", "the", "cat", "sat", ".", ",", "'", "t", "don", "(", ")", "e",
          "##e", "a", "##a", "##t", "日", "本", "E", "Cat", "3", "14", "[", "]", "mask", "#"]
UNK = 1


@pytest.fixture
def uncased() -> WordPieceTokenizer:
    return WordPieceTokenizer(PIECES)


@pytest.mark.parametrize(("text", "pieces"), [
    ("unaffable", ["un", "##aff", "##able"]),
    ("The CAT sat.", ["the", "cat", "sat", "."]),
    ("don't", ["don", "'", "t"]),
    ("cats", ["[UNK]"]),                                   # without ##s, the whole word is unknown
    ("unaffablex the", ["[UNK]", "the"]),
    ("日本cat", ["日", "本", "cat"]),                       # ideographs are words
    ("Éé e\u0301", ["e", "##e", "e"]),                     # accents are deleted, composed or not
    ("c\u00adat c\x00at c\ufffdat ca\u200bt", ["cat"] * 4),      # soft hyphens, controls, zero width
    ("the\u00a0cat\tsat\u3000the", ["the", "cat", "sat", "the"]),
    ("the\x0bcat", ["[UNK]"]),                             # a vertical tab is deleted, which joins the words
    ("ca\x1ct", ["cat"]),
    ("the [MASK] cat[SEP]", ["the", "[MASK]", "cat", "[SEP]"]),
    ("[mask]", ["[", "mask", "]"]),
    ("##able", ["#", "#", "[UNK]"]),
    ("", []),
    (" \n\t", []),
    ("\ud800cat\udfff", ["cat"]),                          # lone surrogates
    ("a" * 100, ["a", *["##a"] * 99]),
    ("a" * 101, ["[UNK]"]),
])
def test_uncased_examples(uncased, text, pieces):
    assert uncased.tokenize(text) == pieces
    assert uncased.encode(text) == [2, *(PIECES.index(piece) for piece in pieces), 3]
    assert uncased.align(text).ids == uncased.encode(text)


def test_cased_keeps_case_and_accents():
    cased = WordPieceTokenizer(PIECES, lowercase=False)
    assert cased.tokenize("Cat cat É E") == ["Cat", "cat", "[UNK]", "E"]


def test_offsets_refer_to_the_original_text(uncased):
    text = "  Thé\u00a0UNaffable,CAT"
    encoding = uncased.align(text)
    assert encoding.offsets == [(0, 0), (2, 5), (6, 8), (8, 11), (11, 15), (15, 16), (16, 19), (0, 0)]
    assert [text[a:b] for a, b in encoding.offsets[1:-1]] == ["Thé", "UN", "aff", "able", ",", "CAT"]
    assert encoding.word_ids == [None, 0, 1, 1, 1, 2, 3, None]
    assert encoding.tokens[1] == "the"


# Combining classes: U+302E tone mark 224, U+1D165 stem 216, U+1D16D augmentation dot 226, U+0301 acute 230,
# U+0334 overlaid tilde 1, U+1B44 virama 9. Stripping accents deletes only acute and tilde.
TONE, STEM, DOT, ACUTE, TILDE, VIRAMA = "\u302e", "\U0001d165", "\U0001d16d", "\u0301", "\u0334", "\u1b44"


@pytest.mark.parametrize(("text", "word", "places"), [
    (f"a{STEM}{TONE}", f"a{STEM}{TONE}", [0, 1, 2]),                # already in order
    (f"a{TONE}{STEM}", f"a{STEM}{TONE}", [0, 1, 2]),                # sorted; the positions are not
    (f"a{ACUTE}{STEM}", f"a{STEM}", [0, 1]),                        # the stem is sorted before the acute
    (f"a{TILDE}{STEM}", f"a{STEM}", [0, 2]),                        # the tilde stays before the stem
    (f"a{DOT}\u200b{STEM}", f"a{STEM}{DOT}", [0, 1, 3]),            # deleted characters do not end a run of marks
    (f"{DOT}a{STEM}", f"{DOT}a{STEM}", [0, 1, 2]),                  # a letter ends it
    (f"\U0001d15f{TONE}", f"\U0001d158{STEM}{TONE}", [0, 0, 1]),    # a note is a head and a stem at one position
    (f"\U0001d15f{VIRAMA}", f"\U0001d158{VIRAMA}{STEM}", [0, 1, 1]),  # the stem has no position of its own
    (f"\xe1{DOT}{STEM}", f"a{STEM}{DOT}", [0, 1, 2]),               # nor has an acute that is part of a letter
    ("\U00011938", "\U00011938", [0]),                              # decomposed in newer Unicode, not in BERT's
    (f"a\U00010f46{STEM}", f"a\U00010f46{STEM}", [0, 1, 2]),        # a mark of class 220 only in newer Unicode
])
def test_marks_that_are_kept_are_sorted_as_in_the_reference(text, word, places):
    letters = sorted(set(word))
    made = WordPieceTokenizer([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])
    pieces = [word[0], *(f"##{letter}" for letter in word[1:])]
    assert made.tokenize(text) == pieces
    found = made.align(text, add_special_tokens=False)
    assert found.tokens == pieces
    assert found.offsets == [(place, place + 1) for place in places]


def test_marks_are_not_sorted_if_accents_are_kept():
    for lowercase in (True, False):
        made = WordPieceTokenizer([*SPECIAL_TOKENS, "a", f"##{STEM}", f"##{TONE}"], lowercase, strip_accents=False)
        assert made.tokenize(f"a{TONE}{STEM}") == ["a", f"##{TONE}", f"##{STEM}"]


@given(st.text(st.sampled_from(["a", "é", " ", "\u200b", "\U0001d15f", TONE, STEM, DOT, ACUTE, TILDE, VIRAMA])))
def test_encode_and_align_agree_on_sorted_marks(text):
    letters = ["a", "e", "\U0001d158", TONE, STEM, DOT, VIRAMA]
    made = WordPieceTokenizer([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])
    found = made.align(text)
    assert found.ids == made.encode(text)
    assert found.offsets[1:-1] == sorted(found.offsets[1:-1])


@given(st.text())
def test_encode_and_align_give_the_same_valid_ids_for_any_text(text):
    made = WordPieceTokenizer(PIECES)
    encoding = made.align(text)
    assert encoding.ids == made.encode(text)
    assert all(0 <= i < len(PIECES) for i in encoding.ids)
    assert all(0 <= a <= b <= len(text) for a, b in encoding.offsets)
    assert encoding.offsets[1:-1] == sorted(encoding.offsets[1:-1])


@given(st.text())
def test_splitting_into_chunks_does_not_change_the_words(text):
    table = normaliser(True, True)
    assert [word for chunk in table.chunks(text) for word in table.words(chunk)] == table.words(text)


def test_a_full_cache_does_not_change_the_ids(uncased, monkeypatch):
    monkeypatch.setattr(chunk_cache, "_CACHED", 3)
    text = "the cat sat. unaffable the cat. don't the, cat sat the " * 5
    assert uncased.encode(text) == WordPieceTokenizer(PIECES).encode(text)
    assert len(uncased._pieces) <= 3


def test_truncation_keeps_the_special_tokens(uncased):
    assert uncased.encode("the cat sat.", max_length=4) == [2, PIECES.index("the"), PIECES.index("cat"), 3]
    assert uncased.encode("the cat sat.", add_special_tokens=False, max_length=2) == [8, 9]
    assert uncased.align("the cat sat.", max_length=3).tokens == ["[CLS]", "the", "[SEP]"]
    with pytest.raises(InputError, match="max_length=1"):
        uncased.encode("the", max_length=1)


@pytest.mark.parametrize(("max_length", "first", "second"), [(None, 5, 3), (11, 5, 3), (10, 4, 3), (9, 3, 3), (8, 3, 2),
                                                             (7, 2, 2), (3, 0, 0)])
def test_pairs_are_truncated_longest_first(uncased, max_length, first, second):
    ids, types = uncased.encode_pair("the the the the the", "cat cat cat", max_length=max_length)
    assert ids == [2, *[8] * first, 3, *[9] * second, 3]
    assert types == [0] * (first + 2) + [1] * (second + 1)


def test_batches_are_padded_to_one_length(uncased):
    batch = uncased.encode_batch(["the cat", ("cat", "sat the"), "."])
    assert batch.input_ids.shape == (3, 6)
    assert batch.input_ids[2].tolist() == [2, 11, 3, 0, 0, 0]
    assert batch.attention_mask.sum(axis=1).tolist() == [4, 6, 3]
    assert batch.token_types[1].tolist() == [0, 0, 0, 1, 1, 1]
    assert uncased.encode_batch(["the"], pad_to=9).input_ids.shape == (1, 9)
    for bad, words in [("the", "list of texts"), (7, "list of texts"), ([], "at least one"), ([7], "not 7"),
                       ([("a", "b", "c")], "pairs of texts"), ([("a", None)], "NoneType")]:
        with pytest.raises(InputError, match=words):
            uncased.encode_batch(bad)
    with pytest.raises(InputError, match="pad_to=2"):
        uncased.encode_batch(["the cat"], pad_to=2)


def test_decoding_is_readable(uncased):
    ids = uncased.encode("Don't (the unaffable cat), the 3.14 cat.")
    assert uncased.decode(ids, skip_special_tokens=True) == "don't (the unaffable cat), the 3.14 cat."
    assert uncased.decode([2, 8, 4, 3]) == "[CLS] the [MASK] [SEP]"
    assert uncased.decode(np.array([8, 9])) == "the cat"
    with pytest.raises(InputError, match="999"):
        uncased.decode([999])


def test_only_text_is_encoded(uncased):
    for bad in (None, 7, b"the", ["the"]):
        with pytest.raises(InputError, match="str"):
            uncased.encode(bad)


# -------------------------------------------------------------------- files

@pytest.mark.parametrize("lowercase", [True, False])
def test_a_saved_tokenizer_loads_unchanged(tmp_path, lowercase):
    made = WordPieceTokenizer(PIECES, lowercase=lowercase)
    made.save(tmp_path)
    for remove in ((), ("vocab.txt",), ("tokenizer_config.json",)):        # each file that other tools may leave out
        for name in remove:
            (tmp_path / name).unlink()
        again = WordPieceTokenizer.load(tmp_path)
        assert again.vocabulary.pieces == made.vocabulary.pieces
        assert (again.lowercase, again.strip_accents) == (lowercase, lowercase)


def test_a_bare_vocabulary_is_loaded(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(PIECES).encode())
    assert WordPieceTokenizer.load(tmp_path / "vocab.txt", lowercase=True).tokenize("The") == ["the"]
    assert WordPieceTokenizer.load(tmp_path / "vocab.txt", lowercase=False).tokenize("The") == ["[UNK]"]


@pytest.mark.parametrize(("pieces", "words"), [
    ([*PIECES, "cat"], "'cat' twice"),
    (PIECES[1:], r"\[PAD\]"),
    ([piece for piece in PIECES if piece != "[MASK]"], r"\[MASK\]"),
    ([], r"\[PAD\]"),
])
def test_a_bad_vocabulary_is_refused(tmp_path, pieces, words):
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    with pytest.raises(VocabularyError, match=words):
        WordPieceTokenizer.load(tmp_path / "vocab.txt")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(VocabularyError, match="no tokenizer"):
        WordPieceTokenizer.load(tmp_path / "absent")
    with pytest.raises(VocabularyError, match="neither"):
        WordPieceTokenizer.load(tmp_path)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(VocabularyError, match="UTF-8"):
        WordPieceTokenizer.load(tmp_path / "binary.txt")
    for content in (b"{", b"[]", b'{"model": {"type": "BPE", "vocab": {}}}', b'{"model": {"vocab": {"a": 5}}}'):
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(VocabularyError, match=r"tokenizer\.json"):
            WordPieceTokenizer.load(tmp_path)
    WordPieceTokenizer(PIECES).save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": "perhaps"}))
    with pytest.raises(VocabularyError, match="do_lower_case"):
        WordPieceTokenizer.load(tmp_path)


def test_a_tokenizer_can_be_pickled(uncased):
    uncased.encode("the cat")
    assert pickle.loads(pickle.dumps(uncased)).encode("the cat") == uncased.encode("the cat")


def test_the_fingerprint_depends_on_the_order():
    assert Vocabulary(PIECES).digest() == Vocabulary(list(PIECES)).digest()
    assert Vocabulary(PIECES).digest() != Vocabulary([*PIECES[:-2], *PIECES[:-3:-1]]).digest()


def test_long_text_without_spaces_is_not_cached():
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "##a", "\u4e2d"])
    assert tokenizer.ids("a" * 101) == [1]
    assert tokenizer.ids("\u4e2d" * 500) == [7] * 500
    assert len(tokenizer._pieces) == 0
