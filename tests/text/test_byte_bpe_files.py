"""The files of byte-level BPE: what is written is read again, and what would give other ids is refused."""

import json

import pytest

from mini_bert import VocabularyError
from mini_bert.text.byte_bpe.learn import count_words, learn_tokenizer
from mini_bert.text.byte_bpe.tokenizer import ByteBPETokenizer
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.opening import has_tokenizer, load_tokenizer, register_tokenizer
from mini_bert.text.template import Template
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

TEXTS = ["the other brother bathes", "It's the mother, isn't it?", "café"] * 3
TOKENIZER_JSON = "tokenizer.json"


@pytest.fixture(scope="module")
def made() -> ByteBPETokenizer:
    return learn_tokenizer(count_words(TEXTS), 320, layout="roberta")


@pytest.fixture
def saved(made, tmp_path):
    made.save(tmp_path)
    return tmp_path


def change(path, edit) -> None:
    content = json.loads(path.read_text("utf-8"))
    edit(content)
    path.write_text(json.dumps(content), "utf-8")


def test_what_is_saved_is_opened_again(made, saved):
    again = load_tokenizer(saved)
    assert isinstance(again, ByteBPETokenizer)
    assert again.vocabulary.pieces == made.vocabulary.pieces
    assert again.vocabulary.roles == made.vocabulary.roles
    assert again.spec.settings == made.spec.settings
    assert again.align("It's the <mask>!") == made.align("It's the <mask>!")
    assert again.to_files() == made.to_files()
    assert load_tokenizer(saved / TOKENIZER_JSON).encode("the") == made.encode("the")


@pytest.mark.parametrize("layout", ["bert", "roberta", "gpt2"])
def test_a_vocabulary_and_merges_are_enough(layout, tmp_path):
    made = learn_tokenizer(count_words(TEXTS, False), 320, layout=layout, add_prefix_space=False)
    made.save(tmp_path)
    (tmp_path / TOKENIZER_JSON).unlink()
    (tmp_path / "tokenizer_config.json").unlink()
    again = load_tokenizer(tmp_path)
    assert again.encode_pair("the mother", "café") == made.encode_pair("the mother", "café")
    assert load_tokenizer(tmp_path / "vocab.json").vocabulary.roles == made.vocabulary.roles


def test_merges_may_be_written_as_pairs_or_lines(made, saved):
    change(saved / TOKENIZER_JSON, lambda content: content["model"].update(
        merges=[line.split(" ") for line in content["model"]["merges"]]))
    assert load_tokenizer(saved).spec.merges == made.spec.merges


def test_the_kind_of_a_directory_is_found_by_its_files(saved, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]).save(other)
    assert isinstance(load_tokenizer(other), WordPieceTokenizer)
    assert has_tokenizer(other)
    assert has_tokenizer(saved)
    assert not has_tokenizer(tmp_path_factory.mktemp("empty"))


def test_a_kind_that_nobody_reads_is_named(saved, tmp_path_factory):
    change(saved / TOKENIZER_JSON, lambda content: content["model"].update(type="Mystery"))
    with pytest.raises(VocabularyError, match="model of the type 'Mystery'"):
        load_tokenizer(saved)
    with pytest.raises(VocabularyError, match="is not the directory of a tokenizer"):
        load_tokenizer(tmp_path_factory.mktemp("empty"))
    with pytest.raises(VocabularyError, match="There is no tokenizer at"):
        load_tokenizer(saved / "nowhere")


def test_a_kind_is_registered_once():
    class Mine(ByteBPETokenizer):
        kind = "byte_bpe"

    with pytest.raises(VocabularyError, match="already"):
        register_tokenizer(Mine)


def token(**changes):
    return {"id": 4, "content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False,
            "special": True} | changes


@pytest.mark.parametrize(("part", "value", "said"), [
    ("normalizer", {"type": "Lowercase"}, "normalizer"),
    ("normalizer", 7, "normalizer"),
    ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
     "use_regex of the pre_tokenizer ByteLevel is false; only true is supported"),
    ("pre_tokenizer", {"type": "ByteLevel", "add_prefix_space": "no"}, "add_prefix_space must be true or false"),
    ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}, "Digits"),
    ("post_processor", {"type": "Mystery"}, "'Mystery'"),
    ("post_processor", {"type": "RobertaProcessing", "cls": ["<s>", 7], "sep": ["</s>", 2]}, "cls of post_processor"),
    ("post_processor", {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}, "must have A"),
    ("model.dropout", 0.1, "model.dropout"),
    ("model.unk_token", "<none>", "<none>"),
    ("model.byte_fallback", True, "model.byte_fallback"),
    ("model.end_of_word_suffix", "</w>", "model.end_of_word_suffix"),
    ("model.vocab", {"a": "0"}, "model.vocab must map"),
    ("model.vocab", ["a"], "model.vocab must map"),
    ("model.merges", ["Ġ t", "t"], "merge 1"),
    ("model.merges", [["Ġ", 3]], "merge 0"),
    ("model.merges", ["Ġ zzz"], "lacks 'zzz'"),
    ("model.merges", "Ġ t", "model.merges must be a list"),
    ("model.merges", None, "model.merges must be a list"),
    ("added_tokens", [token(single_word=True)], "single_word"),
    ("added_tokens", [token(id=7)], "has the id 7"),
    ("added_tokens", [token(id=9999, content="<new>")], "must be 0 to"),
    ("added_tokens", [token(id="4")], "added_tokens"),
    ("added_tokens", ["<mask>"], "added_tokens"),
    ("added_tokens", [token(lstrip="yes")], "lstrip must be true or false"),
])
def test_a_tokenizer_json_that_would_give_other_ids_is_refused(saved, part, value, said):
    def edit(content):
        *before, last = part.split(".")
        (content[before[0]] if before else content)[last] = value

    change(saved / TOKENIZER_JSON, edit)
    with pytest.raises(VocabularyError) as refusal:
        load_tokenizer(saved)
    assert said in str(refusal.value)
    assert str(saved) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_merge_of_what_is_not_bytes_is_refused(made, saved):
    def edit(content):
        content["model"]["vocab"] |= {"日": len(made), "日日": len(made) + 1}
        content["model"]["merges"].append("日 日")

    change(saved / TOKENIZER_JSON, edit)
    with pytest.raises(VocabularyError, match="stand for no byte"):
        load_tokenizer(saved)


@pytest.mark.parametrize(("name", "content", "said"), [
    ("vocab.json", "[1]", "must contain JSON with an object"),
    ("vocab.json", '{"a": 0, "b": 2}', "lacks"),
    ("merges.txt", "#version: 0.2\na b c\n", "merge 0"),
    ("merges.txt", "\xff", "merge 0"),
])
def test_a_wrong_vocabulary_or_merges_file_is_refused(saved, name, content, said):
    (saved / TOKENIZER_JSON).unlink()
    (saved / name).write_text(content, "utf-8")
    with pytest.raises(VocabularyError, match=said):
        load_tokenizer(saved)


def test_a_vocabulary_without_special_tokens_is_refused(saved):
    (saved / TOKENIZER_JSON).unlink()
    change(saved / "vocab.json", lambda ids: ids.update({"<start>": ids.pop("<s>")}))
    with pytest.raises(VocabularyError, match="lacks special tokens"):
        load_tokenizer(saved)


def test_a_cased_tokenizer_is_not_opened_as_uncased(saved):
    with pytest.raises(VocabularyError, match="cannot be opened as uncased"):
        load_tokenizer(saved, lowercase=True)


def test_a_corpus_keeps_the_spaces_between_sentences(tmp_path):
    made = learn_tokenizer(count_words(TEXTS, False), 320, layout="roberta", add_prefix_space=False)
    (tmp_path / "text.txt").write_text("The mother is here. The brother is not.\n\nThe other is.\n", "utf-8")
    prepare([str(tmp_path / "text.txt")], made, tmp_path / "corpus", heldout=0.0, workers=1)
    corpus = Corpus(tmp_path / "corpus")
    assert isinstance(corpus.tokenizer, ByteBPETokenizer)
    assert made.decode(corpus.tokens[:]) == "The mother is here. The brother is not.The other is."
    assert corpus.manifest.unknown_tokens == 0


def test_templates_put_texts_and_tokens_in_order():
    ids = {"<sep>": 4, "<cls>": 3}
    xlnet = Template.parse("$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2", ids)
    assert xlnet.apply([7, 8]) == ([7, 8, 4, 3], [0, 0, 0, 2])
    assert xlnet.apply([7], [8, 9]) == ([7, 4, 8, 9, 4, 3], [0, 0, 1, 1, 1, 2])
    assert (xlnet.before, xlnet.after, xlnet.added(), xlnet.added(pair=True)) == ([], [4, 3], 2, 3)
    assert xlnet.second_at(5) == 6
