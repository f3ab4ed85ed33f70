"""The files of a tokenizer: casing is never guessed, and settings that would give other ids are refused."""

import json
import shutil

import numpy as np
import pytest

from mini_bert import CorpusError, InputError, ModelFactory, VocabularyError
from mini_bert.text.corpora.corpus import MANIFEST, Corpus
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

PIECES = [*SPECIAL_TOKENS, "the", "The", "cat"]
CONFIG, TOKENIZER_JSON = "tokenizer_config.json", "tokenizer.json"


def change(path, edit) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


@pytest.fixture
def bare(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    return tmp_path


@pytest.fixture
def saved(tmp_path):
    WordPieceTokenizer(PIECES, lowercase=False).save(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", "vocab.txt"])
def test_a_bare_vocabulary_needs_an_explicit_casing(bare, name):
    with pytest.raises(VocabularyError, match=r"lowercase=False .*--cased or --uncased"):
        WordPieceTokenizer.load(bare / name)
    assert WordPieceTokenizer.load(bare / name, lowercase=False).tokenize("The") == ["The"]
    assert ModelFactory.create_tokenizer(vocab_path=bare / name, lowercase=True).tokenize("The") == ["the"]


@pytest.mark.parametrize(("name", "removed"), [
    ("", "added_tokens.json"), ("", CONFIG), ("", TOKENIZER_JSON), ("", "vocab.txt"),
    ("vocab.txt", CONFIG), ("vocab.txt", TOKENIZER_JSON), (TOKENIZER_JSON, CONFIG), (TOKENIZER_JSON, "vocab.txt")])
def test_stored_casing_is_found_from_every_file_and_cannot_be_overridden(saved, name, removed):
    (saved / removed).unlink(missing_ok=True)
    assert WordPieceTokenizer.load(saved / name).tokenize("The") == ["The"]
    assert not WordPieceTokenizer.load(saved / name, lowercase=False).lowercase
    with pytest.raises(VocabularyError, match="is cased and cannot"):
        WordPieceTokenizer.load(saved / name, lowercase=True)


def test_a_vocabulary_with_another_name_ignores_the_files_next_to_it(saved):
    shutil.copy(saved / "vocab.txt", saved / "other.txt")
    assert WordPieceTokenizer.load(saved / "other.txt", lowercase=True).lowercase


@pytest.mark.parametrize(("key", "value"), [("do_lower_case", True), ("strip_accents", True)])
def test_files_that_disagree_are_refused(saved, key, value):
    change(saved / CONFIG, lambda config: config.update({key: value}))
    with pytest.raises(VocabularyError, match=f"disagree about {key}"):
        WordPieceTokenizer.load(saved)


def test_two_vocabularies_that_differ_are_refused(saved):
    (saved / "vocab.txt").write_text("\n".join([*PIECES, "dog"]))
    with pytest.raises(VocabularyError, match="different pieces"):
        WordPieceTokenizer.load(saved)


def token(**changes):
    return {"id": 4, "content": "[MASK]", "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True} | changes


@pytest.mark.parametrize(("part", "value", "key"), [
    ("normalizer", None, "normalizer.type"),
    ("normalizer", {"type": "Lowercase"}, "normalizer.type"),
    ("normalizer", {"handle_chinese_chars": False}, "normalizer.handle_chinese_chars"),
    ("normalizer", {"clean_text": False}, "normalizer.clean_text"),
    ("normalizer", {"lowercase": "no"}, "do_lower_case"),
    ("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer.type"),
    ("pre_tokenizer", None, "pre_tokenizer.type"),
    ("post_processor", None, "post_processor"),
    ("post_processor", {"single": []}, "post_processor"),
    ("model", {"type": "BPE"}, "model.type"),
    ("model", {"unk_token": "<unk>"}, "model.unk_token"),
    ("model", {"continuing_subword_prefix": ""}, "model.continuing_subword_prefix"),
    ("model", {"max_input_chars_per_word": 200}, "model.max_input_chars_per_word"),
    ("model", {"vocab": {"[PAD]": "0"}}, "model.vocab"),
    ("added_tokens", [token(content="<new>")], "<new>"),
    ("added_tokens", [token(lstrip=True)], "lstrip"),
    ("added_tokens", [token(normalized=True)], "normalized"),
    ("added_tokens", [token(id=7)], "id of"),
    ("added_tokens", ["[MASK]"], "added_tokens"),
    ("added_tokens", 7, "added_tokens"),
])
def test_a_tokenizer_json_that_would_give_other_ids_is_refused(saved, part, value, key):
    change(saved / TOKENIZER_JSON, lambda content: content[part].update(value) if isinstance(value, dict)
           else content.update({part: value}))
    with pytest.raises(VocabularyError) as refusal:
        WordPieceTokenizer.load(saved)
    assert key in str(refusal.value)
    assert str(saved) in str(refusal.value)


@pytest.mark.parametrize(("key", "value"), [
    ("tokenize_chinese_chars", False), ("do_basic_tokenize", False), ("never_split", ["cat"]),
    ("mask_token", "<mask>"), ("cls_token", {"content": "<s>"}), ("additional_special_tokens", ["<new>"]),
    ("extra_special_tokens", {"image": "<image>"}), ("added_tokens_decoder", {"9": token(content="<new>")}),
    ("added_tokens_decoder", {"4": token(rstrip=True)}), ("tokenizer_class", "BertJapaneseTokenizer"),
])
def test_a_tokenizer_config_that_would_give_other_ids_is_refused(saved, key, value):
    (saved / TOKENIZER_JSON).unlink()
    change(saved / CONFIG, lambda config: config.update({key: value}))
    with pytest.raises(VocabularyError, match=rf"tokenizer_config\.json: .*{key}"):
        WordPieceTokenizer.load(saved)


def test_an_added_tokens_file_with_new_tokens_is_refused(saved):
    (saved / "added_tokens.json").write_text('{"<new>": 8}')
    with pytest.raises(VocabularyError, match=r"added_tokens\.json.*<new>"):
        WordPieceTokenizer.load(saved)


def test_files_of_older_libraries_are_opened(saved):
    def as_older_libraries(content):
        content.update(post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
                     truncation={"max_length": 128}, padding={"strategy": "BatchLongest"}, added_tokens=[])
        content["normalizer"]["strip_accents"] = None
        del content["model"]["type"]

    change(saved / TOKENIZER_JSON, as_older_libraries)
    change(saved / CONFIG, lambda config: config.update(
        mask_token={"content": "[MASK]", "lstrip": False}, strip_accents=None, never_split=None,
        added_tokens_decoder={"4": token()}, tokenizer_class="PreTrainedTokenizerFast"))
    assert WordPieceTokenizer.load(saved).tokenize("The cat") == ["The", "cat"]


# -------------------------------------------------------------------- a corpus

def test_a_corpus_with_another_casing_is_refused(corpus, tokenizer, tmp_path):
    cased = WordPieceTokenizer(tokenizer.vocabulary, lowercase=False)
    with pytest.raises(CorpusError, match="lowercase=True, but the tokenizer has lowercase=False"):
        corpus.require_vocabulary(cased)
    with pytest.raises(CorpusError, match="strip_accents=True"):
        corpus.require_vocabulary(WordPieceTokenizer(tokenizer.vocabulary, strip_accents=False))
    older = tmp_path / "older"
    shutil.copytree(corpus.directory, older)
    change(older / MANIFEST, lambda manifest: [manifest.pop(key) for key in ("lowercase", "strip_accents", "digest")])
    Corpus(older).require_vocabulary(cased)


# -------------------------------------------------------------------- arguments

@pytest.mark.parametrize(("call", "words"), [
    (lambda t: t.decode(["1"]), "not '1'"),
    (lambda t: t.decode([1.0]), "not 1.0"),
    (lambda t: t.decode(7), "list of ids"),
    (lambda t: t.decode("7"), "list of ids"),
    (lambda t: t.decode(np.zeros((2, 2), int)), "whole number"),
    (lambda t: t.decode([-1]), "0 to 7"),
    (lambda t: t.encode("the", add_special_tokens=False, max_length=-1), "at least 0, not -1"),
    (lambda t: t.align("the", add_special_tokens=False, max_length=-1), "at least 0, not -1"),
    (lambda t: t.encode("the", max_length=2.5), "max_length must be a whole number"),
    (lambda t: t.encode_pair("the", "cat", max_length=2), "3 special tokens"),
    (lambda t: t.encode_batch(["the"], pad_to="9"), "pad_to must be a whole number"),
])
def test_invalid_arguments_are_refused_with_a_clear_message(call, words):
    with pytest.raises(InputError, match=words):
        call(WordPieceTokenizer(PIECES))


@pytest.mark.parametrize("piece", ["a\nb", "a\r", "\ud800", 7])
def test_a_piece_that_cannot_be_a_line_is_refused(piece):
    with pytest.raises(VocabularyError, match="number 8"):
        Vocabulary([*PIECES, piece])


@pytest.mark.parametrize("name", ["tokenizer_config.json", "tokenizer.json", "vocab.txt"])
def test_no_changed_bit_of_a_tokenizer_changes_how_text_is_read(tmp_path, name):
    """What one file says, another says too, so a change is refused, or is of something that nothing depends on."""
    saved = WordPieceTokenizer([*SPECIAL_TOKENS, "the", "cat", "##s", "é", "a"])
    saved.save(tmp_path)
    texts = ["The CÂTS, é [MASK] 你 " + "a" * 150, "the cats"]
    expected, content = [saved.encode(text) for text in texts], (tmp_path / name).read_bytes()
    rng = np.random.default_rng(0)
    for place, bit in zip(rng.integers(0, len(content), 400).tolist(), rng.integers(0, 8, 400).tolist(), strict=True):
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        (tmp_path / name).write_bytes(changed)
        try:
            loaded = WordPieceTokenizer.load(tmp_path)
        except VocabularyError:
            continue
        assert [loaded.encode(text) for text in texts] == expected, (place, bit)
