"""Byte-level BPE: splitting, merging, learning, offsets and decoding, on examples that can be checked by hand."""

import pickle
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert import InputError, VocabularyError
from mini_bert.text.byte_bpe.alphabet import CHARACTERS, to_bytes, to_characters
from mini_bert.text.byte_bpe.batch_merging import BatchMerger
from mini_bert.text.byte_bpe.learn import count_words, learn_tokenizer
from mini_bert.text.byte_bpe.merging import Merger
from mini_bert.text.byte_bpe.splitting import words
from mini_bert.text.byte_bpe.tokenizer import ByteBPETokenizer
from mini_bert.text.pipeline.unicode_forms import nfc

TEXT = ["The other mother bathes the brother.", "It's hot, isn't it? They'll say it's 100!", "naïve café über 日本"] * 3


@pytest.fixture(scope="module", params=["bert", "roberta", "gpt2"])
def tokenizer(request) -> ByteBPETokenizer:
    return learn_tokenizer(count_words(TEXT, True), 340, layout=request.param, add_prefix_space=True)


@pytest.fixture(scope="module")
def roberta() -> ByteBPETokenizer:
    return learn_tokenizer(count_words(TEXT, False), 340, layout="roberta", add_prefix_space=False)


# ---------------------------------------------------------------- bytes and words

def test_each_byte_has_a_printable_character_of_its_own():
    assert len(set(CHARACTERS)) == 256
    assert all(character.isprintable() and not character.isspace() for character in CHARACTERS)
    assert to_characters("a é\n".encode()) == "aĠÃ©Ċ"
    assert to_bytes(CHARACTERS) == bytes(range(256))
    assert to_bytes("日") is None


@pytest.mark.parametrize(("text", "expected"), [
    ("Don't say it's 100!", ["Don", "'t", " say", " it", "'s", " 100", "!"]),
    ("we'll 'll they've''s", ["we", "'ll", " '", "ll", " they", "'ve", "''", "s"]),
    ("a  b   c", ["a", " ", " b", "  ", " c"]),
    ("a\nb\n\nc \n d\t", ["a", "\n", "b", "\n", "\n", "c", " \n", " d", "\t"]),
    ("  ", ["  "]),
    (" a ", [" a", " "]),
    ("x2y³ ½日本語ⅷ", ["x", "2", "y", "³", " ½", "日本語", "ⅷ"]),
    ("e\u0301 \u00a0\u3000x\u001c", ["e", "\u0301", " \u00a0", "\u3000", "x", "\u001c"]),
    ("", []),
])
def test_words_are_those_of_the_pattern(text, expected):
    assert words(text) == expected


@given(st.text())
def test_words_joined_are_the_text(text):
    assert "".join(words(text)) == text


# ---------------------------------------------------------------- merging

def by_definition(merger: Merger, word: bytes) -> list[int]:
    """Merge the pair of the lowest rank, the leftmost first, as the docstring says."""
    symbols = list(word)
    while True:
        ranks = [(merger.rank[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in merger.rank]
        if not ranks:
            return symbols
        rank, i = min(ranks)
        symbols[i : i + 2] = [merger.made[rank]]


def random_merger(rng: random.Random, letters: bytes, again: bool) -> Merger:
    """Merges of random pieces; with `again`, two merges may make the same piece."""
    spelled = {byte: bytes([byte]) for byte in range(256)}
    merges: list[tuple[int, int, int]] = []
    for _ in range(rng.randint(0, 15)):
        known = {data: i for i, data in spelled.items()}
        pool = [i for i, data in spelled.items() if set(data) <= set(letters)]
        left, right = rng.choice(pool), rng.choice(pool)
        data = spelled[left] + spelled[right]
        if len(data) <= 9 and (left, right) not in [merge[:2] for merge in merges] and (again or data not in known):
            made = known.get(data, len(spelled))
            spelled[made] = data
            merges.append((left, right, made))
    if again:
        rng.shuffle(merges)
    return Merger(spelled, merges, range(256))


@pytest.mark.parametrize("again", [False, True], ids=["lists as learned", "any lists"])
def test_every_way_of_merging_gives_the_pieces_of_the_definition(again):
    rng, found = random.Random(0), []
    for _ in range(300):
        letters = b"abc"[: rng.randint(1, 3)]
        merger = random_merger(rng, letters, again)
        made = [bytes(rng.choices(letters, k=rng.randint(1, 14))) for _ in range(20)]
        together = BatchMerger(merger)(made)
        for word, ids in zip(made, together, strict=True):
            expected = by_definition(merger, word)
            assert np.frombuffer(ids, np.uint32).tolist() == expected
            assert merger.by_search(word) == expected
            assert merger.by_heap(word) == expected
            assert merger(word) == expected
        assert all(by_definition(merger, spelled) == [piece] for spelled, piece in merger.whole.items())
        found += [len(merger.whole) > 256]
    assert any(found)


def test_bytes_without_a_piece_are_left_out_of_many_words_too():
    merger = Merger({i: bytes([i]) for i in b"ab"} | {300: b"ab"}, [(97, 98, 300)],
                    [i if i in b"ab" else None for i in range(256)])
    words = [b"ab", b"xx", b"axb", b"xa"]
    assert [np.frombuffer(ids, np.uint32).tolist() for ids in BatchMerger(merger)(words)] == [[300], [], [300], [97]]
    assert [merger(word) for word in words] == [[300], [], [300], [97]]


def test_a_long_word_takes_time_in_proportion_to_its_length(roberta):
    assert len(roberta.ids("the" * 30_000)) > 10_000


def test_pieces_are_merged_by_rank():
    o, t, h, e = b"othe"
    spelled = {i: bytes([i]) for i in range(256)} | {300: b"he", 301: b"the", 302: b"ot", 303: b"othe"}
    merger = Merger(spelled, [(h, e, 300), (t, 300, 301), (o, t, 302), (302, 300, 303)], range(256))
    assert merger(b"othe") == [o, 301]
    assert merger(b"ot") == [302]


# ---------------------------------------------------------------- learning

def test_the_most_frequent_pair_is_merged_first_and_the_older_of_equals():
    made = learn_tokenizer(count_words(["ab ab ab cd cd cd ef"], False), 256 + 1 + 3, layout="gpt2",
                           add_prefix_space=False, min_frequency=1)
    assert list(made.spec.merges) == [("a", "b"), ("c", "d"), ("Ġ", "cd")]      # ab and cd: 3 each, Ġcd: 3, Ġab: 2


def test_learning_stops_at_rare_pairs_and_refuses_what_is_impossible():
    assert len(learn_tokenizer(count_words(["abcd"]), 400)) == 256 + 5
    with pytest.raises(VocabularyError, match="need 261 pieces"):
        learn_tokenizer(count_words(["abcd"]), 200)
    with pytest.raises(VocabularyError, match="no words"):
        learn_tokenizer(count_words([""]), 400)
    with pytest.raises(VocabularyError, match="choose bert, roberta, gpt2"):
        learn_tokenizer(count_words(["abcd"]), 400, layout="t5")


# ---------------------------------------------------------------- text to ids and back

@given(text=st.text())
def test_decoding_gives_any_text_back(text):
    made = learn_tokenizer(count_words(TEXT, False), 300, layout="gpt2", add_prefix_space=False)
    if "<|endoftext|>" not in text:
        assert made.decode(made.encode(text)) == text


@given(text=st.text())
def test_ids_alignment_and_arrays_agree_for_any_text(roberta, text):
    encoding = roberta.align(text)
    assert encoding.ids == roberta.encode(text)
    assert all(0 <= a <= b <= len(text) for a, b in encoding.offsets)
    ids, lengths = roberta.ids_array([text, "", text])
    assert ids.tolist() == 2 * roberta.ids(text)
    assert lengths.tolist() == [len(encoding.ids) - 2, 0, len(encoding.ids) - 2]


def test_many_texts_at_once_have_the_ids_of_each(tokenizer):
    rng = random.Random(0)
    made = ["".join(rng.choices("bathermoé日's1!-", k=rng.randint(1, 70))) for _ in range(1000)]
    texts = [" ".join(made[start : start + 5]) for start in range(0, len(made), 5)]
    texts += ["", "a  b\n\tc ", "x [MASK] <mask> <|endoftext|> other", "\ud800", *TEXT]
    ids, lengths = ByteBPETokenizer(tokenizer.spec).ids_array(iter(texts))
    expected = [tokenizer.ids(text) for text in texts]
    assert ids.tolist() == [i for row in expected for i in row]
    assert lengths.tolist() == [len(row) for row in expected]


def test_a_first_word_is_like_any_other_with_a_space_in_front(tokenizer):
    assert tokenizer.ids("the the") == 2 * tokenizer.ids("the")
    assert tokenizer.ids("the") == tokenizer.ids(" the") == tokenizer.word_ids("the")
    assert tokenizer.align("the the", add_special_tokens=False).offsets == [(0, 3), (4, 7)]


def test_special_tokens_stand_where_each_model_has_them():
    made = {layout: learn_tokenizer(count_words(TEXT), 320, layout=layout) for layout in ("bert", "roberta", "gpt2")}
    pieces = {layout: [one.vocabulary[i] for i in one.encode_pair(" it", " the")[0]] for layout, one in made.items()}
    assert pieces == {"bert": ["[CLS]", "Ġit", "[SEP]", "Ġthe", "[SEP]"], "gpt2": ["Ġit", "Ġthe"],
                      "roberta": ["<s>", "Ġit", "</s>", "</s>", "Ġthe", "</s>"]}
    assert made["bert"].encode_pair(" it", " the")[1] == [0, 0, 0, 1, 1]
    assert made["roberta"].vocabulary.roles == {"pad": 1, "unk": 3, "cls": 0, "sep": 2, "mask": 4}
    assert made["bert"].vocabulary.roles == {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    with pytest.raises(VocabularyError, match="no special token for mask"):
        _ = made["gpt2"].vocabulary.mask


def test_a_mask_takes_the_space_before_it(roberta):
    mask = roberta.vocabulary.mask
    assert roberta.ids("the <mask> the") == [*roberta.ids("the"), mask, *roberta.ids(" the")]
    assert roberta.align("the  <mask>", add_special_tokens=False).offsets == [*roberta.align(
        "the", add_special_tokens=False).offsets, (5, 11)]
    assert roberta.ids(roberta.with_mask("a [MASK]")) == [*roberta.ids("a"), mask]


def test_a_character_of_several_bytes_is_where_each_of_its_pieces_is(roberta):
    encoding = roberta.align("a€ 語", add_special_tokens=False)
    assert [place for place in encoding.offsets if place == (1, 2)] == 3 * [(1, 2)]
    assert encoding.word_ids[-1] == 2
    assert roberta.decode(encoding.ids[:2]) == "a\ufffd"


def test_ids_out_of_the_vocabulary_are_refused(roberta):
    with pytest.raises(InputError, match="outside the vocabulary"):
        roberta.decode([340])


def test_half_a_surrogate_pair_does_no_harm(roberta):
    assert roberta.decode(roberta.encode("a\ud800b"), skip_special_tokens=True).startswith("a\ufffd")


def test_a_tokenizer_can_be_sent_to_another_process(tokenizer):
    tokenizer.encode("the cat")
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.encode("the cat, [MASK]") == tokenizer.encode("the cat, [MASK]")


@pytest.mark.parametrize(("text", "composed", "places"), [
    ("cafe\u0301s", "cafés", [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6)]),
    ("a\u0323\u0302", "\u1ead", [(0, 1)]),
    ("\u1112\u1161\u11ab", "한", [(0, 1)]),
    ("\u212b", "Å", [(0, 1)]),
    ("q\u0307\u0323", "q\u0323\u0307", [(0, 1), (1, 2), (2, 3)]),
])
def test_letters_and_marks_are_composed(text, composed, places):
    assert nfc(text) == (composed, places)
    assert nfc(composed) == (composed, None)
