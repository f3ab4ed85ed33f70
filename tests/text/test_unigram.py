"""Unigram tokenizers: segmentation, offsets, special tokens, files, and files that are refused."""

import json
import lzma
import pickle
import sys
from base64 import b64encode
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unigram_files import PIECES, sentencepiece_model, tokenizer_json

from mini_bert.errors import VocabularyError
from mini_bert.text.opening import load_tokenizer
from mini_bert.text.pipeline.aligned import AlignedText
from mini_bert.text.pipeline.normalizers import read_normalizer
from mini_bert.text.pipeline.precompiled import CharacterMap
from mini_bert.text.unigram.files import UnigramSpec
from mini_bert.text.unigram.sentencepiece import parse_model
from mini_bert.text.unigram.tokenizer import UnigramTokenizer
from mini_bert.text.unigram.viterbi import Unigram

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from charsmaps import charsmap

REAL_MAP = Path(__file__).parents[1] / "reference" / "nmt_nfkc_cf.charsmap.xz"      # SentencePiece's own


def made(**changes: Any) -> UnigramTokenizer:
    return UnigramTokenizer(UnigramSpec.of(tokenizer_json(**changes), "tokenizer.json"))


@pytest.fixture(scope="module")
def tokenizer() -> UnigramTokenizer:
    return made()


# ---------------------------------------------------------------- segmentation

def best_of_all(model: Unigram, text: str) -> float:
    """The score of the best segmentation, by trying them all."""
    unknown = {letter for letter in text if letter not in model.scored}
    scores = []
    for cuts in range(1 << max(len(text) - 1, 0)):
        places = [0, *(i for i in range(1, len(text)) if cuts >> (i - 1) & 1), len(text)]
        parts = [text[a:b] for a, b in pairwise(places)]
        if all(part in model.scored or part in unknown for part in parts):
            scores.append(sum(model.scored[part][0] if part in model.scored else model.unknown_score for part in parts))
    return max(scores)


@given(st.lists(st.tuples(st.text("abc", min_size=1, max_size=3), st.integers(-9, -1)), max_size=9),
       st.text("abcd", min_size=1, max_size=9))
def test_the_segmentation_has_the_best_score_of_all(pieces, text):
    unique = {"<unk>": 0.0} | {piece: float(score) for piece, score in pieces}
    model = Unigram(list(unique.items()), 0)
    found, start, score = model.segment(text), 0, 0.0
    for i, end in found:
        score += (end - start) * model.unknown_score if i == 0 else model.pieces[i][1]
        start = end
    assert start == len(text)
    assert score == pytest.approx(best_of_all(model, text))


def test_of_equal_scores_the_longest_last_piece_wins():
    model = Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("c", -1.0), ("ab", -2.0), ("bc", -2.0)], 0)
    assert [model.pieces[i][0] for i, _ in model.segment("abc")] == ["a", "bc"]


def test_unknown_characters_in_a_row_are_one_token():
    model = Unigram([("<unk>", 0.0), ("a", -1.0)], 0)
    assert model.segment("xxaxy") == [(0, 2), (1, 3), (0, 5)]


def test_unknown_characters_are_bytes_with_byte_fallback():
    model = Unigram([("<unk>", 0.0), ("a", -1.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256))], 0,
                    byte_fallback=True)
    assert [model.pieces[i][0] for i, _ in model.segment("aé")] == ["a", "<0xC3>", "<0xA9>"]


def test_a_character_without_an_unknown_token_is_refused():
    with pytest.raises(VocabularyError, match="no token for unknown"):
        Unigram([("a", -1.0)], None).segment("b")


# ---------------------------------------------------------------- texts

def test_words_are_segmented_with_their_spaces(tokenizer):
    assert tokenizer.tokenize("A hug hugs") == ["▁a", "▁hug", "▁hug", "s"]
    assert tokenizer.decode(tokenizer.ids("A hug hugs")) == "a hug hugs"


def test_offsets_are_those_of_the_text_before_normalisation(tokenizer):
    found = tokenizer.align("Húg ﬁ", add_special_tokens=False)
    assert found.tokens == ["▁hug", "▁", "fi"]
    assert found.offsets == [(0, 3), (4, 5), (4, 5)]


def test_a_mask_takes_the_space_before_it(tokenizer):
    found = tokenizer.align("a [MASK] hug")
    assert found.tokens == ["[CLS]", "▁a", "[MASK]", "▁hug", "[SEP]"]
    assert found.offsets[2] == (1, 8)


def test_the_long_way_and_the_cache_give_the_same_ids(tokenizer):
    for text in ("a hug", " a  hug ", "", "hug\u0301 \u0301hug", "a´ ´a", "▁a ▁ hug", "[MASK]hug[MASK]", "\ud800 hug",
                 "ﬁ\u3000x"):
        assert tokenizer.ids(text) == [i for i, _, _ in tokenizer.aligned(text)]


def test_pairs_have_the_types_of_the_template(tokenizer):
    ids, types = tokenizer.encode_pair("a", "hug")
    assert [tokenizer.vocabulary[i] for i in ids] == ["[CLS]", "▁a", "[SEP]", "▁hug", "[SEP]"]
    assert types == [0, 0, 0, 1, 1]


def test_it_knows_what_it_folds_and_its_roles(tokenizer):
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (True, True)
    assert tokenizer.vocabulary.special.roles == {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]",
                                                  "mask": "[MASK]"}


def test_a_pickled_tokenizer_gives_the_same_ids(tokenizer):
    assert pickle.loads(pickle.dumps(tokenizer)).ids("a hugs") == tokenizer.ids("a hugs")


def test_flags_of_added_tokens_are_followed():
    new = {"id": len(PIECES), "content": "Big", "single_word": True, "lstrip": False, "rstrip": True,
           "normalized": True, "special": False}
    tokenizer = made(added_tokens=[*tokenizer_json()["added_tokens"], new])
    found = tokenizer.align("a BIG  hug bigs", add_special_tokens=False)
    assert found.ids[:3] == [15, len(PIECES), 12]
    assert found.ids.count(len(PIECES)) == 1
    assert tokenizer.decode(found.ids[:3]) == "abig hug"


# ---------------------------------------------------------------- normalizers

def normalised(text: str, *parts: dict[str, Any]) -> str:
    found = AlignedText.of(text)
    for function in read_normalizer({"type": "Sequence", "normalizers": list(parts)}, "tokenizer.json"):
        found = function(found)
    assert len(found.spans) == len(found.text)
    return found.text


@pytest.mark.parametrize(("part", "text", "expected"), [
    ({"type": "NFC"}, "e\u0301 \u1100\u1161\u11a8", "é 각"),
    ({"type": "NFKC"}, "ﬁ ½", "fi 1⁄2"),
    ({"type": "NFD"}, "é", "e\u0301"),
    ({"type": "Strip", "strip_left": False, "strip_right": True}, " é\u3000", " é"),
    ({"type": "Replace", "pattern": {"Regex": r"\s{2,}|[\n\r\t]"}, "content": " "}, "a\t\nb\nc", "a b c"),
    ({"type": "Replace", "pattern": {"String": "``"}, "content": '"'}, "``x``", '"x"'),
    ({"type": "Nmt"}, "a\x01b\u200bc▁d", "ab c d"),
    ({"type": "Prepend", "prepend": "▁"}, "a", "▁a"),
    ({"type": "Lowercase"}, "ΑΣ İ", "ας i̇".replace("ς", "σ")),
])
def test_normalizers_change_text(part, text, expected):
    assert normalised(text, part) == expected


def test_a_character_map_takes_the_shortest_key_of_a_cluster():
    found = CharacterMap(charsmap({"a": "X", "a\u0301": "Y", "ﬁ": "fi", "q": ""}), "map")
    assert found.normalise(AlignedText.of("a\u0301b ﬁq")).text == "Xb fi"
    assert found.normalise(AlignedText.of("xﬁy")).spans == [(0, 1), (1, 2), (1, 2), (2, 3)]


def test_sentencepieces_own_map_folds_case_and_width():
    part = {"type": "Precompiled", "precompiled_charsmap": b64encode(lzma.decompress(REAL_MAP.read_bytes())).decode()}
    assert normalised("Ｈéllo　Ⅷ ㍿\u00ad ½", part) == "héllo viii 株式会社\u00ad 1⁄2"


# ---------------------------------------------------------------- files

def test_a_saved_tokenizer_is_opened_as_its_kind(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "made")
    opened = load_tokenizer(tmp_path / "made")
    assert isinstance(opened, UnigramTokenizer)
    assert opened.encode("a hugs [MASK]") == tokenizer.encode("a hugs [MASK]")


def test_a_sentencepiece_model_alone_is_opened(tmp_path):
    pieces = [(piece, score, 2 if piece == "<unk>" else 3 if i < 5 else 1) for i, (piece, score) in enumerate(PIECES)]
    for name in ("spiece.model", "spm.model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(sentencepiece_model(pieces, charsmap=charsmap({"H": "h"})))
        found = load_tokenizer(tmp_path / name).align("a  Hugs ")
        assert found.tokens == ["[CLS]", "▁a", "▁hug", "s", "[SEP]"]
        assert found.offsets == [(0, 0), (0, 1), (2, 6), (6, 7), (0, 0)]


def test_a_model_without_a_mask_gets_one_as_deberta_does(tmp_path):
    pieces = [("[PAD]", 0.0, 3), ("[CLS]", 0.0, 3), ("[SEP]", 0.0, 3), ("[UNK]", 0.0, 2), ("▁a", -1.0, 1),
              ("▁", -3.0, 1)]
    (tmp_path / "spm.model").write_bytes(sentencepiece_model(pieces))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.vocabulary.mask == 6
    assert tokenizer.encode("a [MASK]") == [1, 4, 6, 2]


def test_a_model_beside_alberts_config_is_cleaned_as_albert_does(tmp_path):
    pieces = [(piece, score, 2 if piece == "<unk>" else 3 if i < 5 else 1) for i, (piece, score) in enumerate(PIECES)]
    (tmp_path / "spiece.model").write_bytes(sentencepiece_model(pieces))
    unknown = load_tokenizer(tmp_path).align("Húg").tokens
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    assert load_tokenizer(tmp_path).align("Húg").tokens == ["[CLS]", "▁hug", "[SEP]"] != unknown
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "keep_accents": true}')
    assert load_tokenizer(tmp_path).align("Húg").tokens == unknown


@pytest.mark.parametrize(("said", "ids", "pair"), [
    ({"config.json": {"model_type": "xlm-roberta"}}, [0, 4, 3, 6, 2], [0, 4, 2, 2, 4, 2]),
    ({"config.json": {"model_type": "camembert"}}, [5, 7, 3, 9, 6], [5, 7, 6, 6, 7, 6]),
    ({"tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizerFast"}}, [0, 4, 3, 6, 2], [0, 4, 2, 2, 4, 2]),
], ids=["xlm-roberta", "camembert", "tokenizer_class"])
def test_pieces_that_an_architecture_numbers_anew_have_its_ids(said, ids, pair, tmp_path):
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("▁a", -1.0, 1), ("▁", -3.0, 1)]
    (tmp_path / "sentencepiece.bpe.model").write_bytes(sentencepiece_model(pieces))
    with pytest.raises(VocabularyError, match="xlm-roberta or camembert"):
        load_tokenizer(tmp_path)
    for name, content in said.items():
        (tmp_path / name).write_text(json.dumps(content))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.encode("az<mask>")[1:] == [ids[1], tokenizer.vocabulary.unk, ids[3], ids[4]]
    assert tokenizer.encode_pair("a", "a")[0] == pair
    tokenizer.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").encode("az<mask>") == tokenizer.encode("az<mask>")


def test_pieces_that_do_not_begin_as_a_model_does_are_not_numbered_anew(tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(sentencepiece_model([("<s>", 0.0, 3), ("<unk>", 0.0, 2)]))
    (tmp_path / "config.json").write_text('{"model_type": "camembert"}')
    with pytest.raises(VocabularyError, match="begin with <unk> <s> </s>"):
        load_tokenizer(tmp_path)


def test_xlnets_tokens_stand_at_the_end(tmp_path):
    pieces = [("<unk>", 0.0, 2), ("<cls>", 0.0, 3), ("<sep>", 0.0, 3), ("▁a", -1.0, 1), ("▁", -3.0, 1)]
    (tmp_path / "spiece.model").write_bytes(sentencepiece_model(pieces))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.encode("a") == [3, 2, 1]
    assert tokenizer.encode_pair("a", "a") == ([3, 2, 3, 2, 1], [0, 0, 1, 1, 2])


@pytest.mark.parametrize(("part", "value", "said"), [
    ("model", {"type": "Unigram", "vocab": []}, "list of pieces"),
    ("model", {"type": "Unigram", "vocab": [["a"]]}, "not a piece and its"),
    ("model", {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 1}, "unk_id is 1"),
    ("model", {"type": "Unigram", "vocab": [["a", -1.0], ["a", -2.0]], "unk_id": 0}, "the piece 'a' twice"),
    ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Magic"}]}, "'Magic' is not supported"),
    ("normalizer", {"type": "Replace", "pattern": {"Regex": "(a+)+b"}, "content": ""}, "is not supported"),
    ("normalizer", {"type": "Replace", "pattern": {"Regex": "a*"}, "content": ""}, "at least one"),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "cut off"),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "%"}, "not base64"),
    ("normalizer", "NFC", "is not supported"),
    ("pre_tokenizer", {"type": "Metaspace", "replacement": "__"}, "one character"),
    ("pre_tokenizer", {"type": "Metaspace", "replacement": "_", "prepend_scheme": "often"}, "always, first or never"),
    ("decoder", {"type": "CTC"}, "'CTC' is not supported"),
    ("added_tokens", [{"id": 77, "content": "x"}], "it must be there once, with the id 19"),
    ("added_tokens", [{"id": 1}], "must have a content"),
])
def test_files_that_would_give_other_ids_are_refused_in_one_sentence(part, value, said, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({**tokenizer_json(), part: value}))
    with pytest.raises(VocabularyError, match=said) as refused:
        UnigramTokenizer.load(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cut", [1, 5, 40, -3])
def test_a_damaged_model_is_refused(cut, tmp_path):
    data = sentencepiece_model([("<unk>", 0.0, 2), ("▁abcdef", -1.0, 1)])
    (tmp_path / "spm.model").write_bytes(data[:cut])
    with pytest.raises(VocabularyError, match="SentencePiece model"):
        load_tokenizer(tmp_path)


def test_a_model_of_another_type_is_refused(tmp_path):
    (tmp_path / "spm.model").write_bytes(sentencepiece_model([("<unk>", 0.0, 2)], model_type=2))
    with pytest.raises(VocabularyError, match="another type than unigram"):
        load_tokenizer(tmp_path)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_model_or_refused(data):
    with suppress(VocabularyError):               # and no other exception
        parse_model(data, "spm.model")
