"""Live comparison with transformers' BERT tokenizer; run by `make parity` in an environment of its own."""

import random
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_strings import lines, runs_of_marks, strings

from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.normalise import normaliser
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")


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
