"""Live comparison of Unigram tokenizers with tokenizers, transformers and, where it is installed, sentencepiece.

MINI_BERT_STRINGS=100000 compares that many made-up strings for each kind of tokenizer; the default is 2,000.
"""

import json
import lzma
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_strings import lines, runs_of_marks, strings

import mini_bert
from mini_bert.text.opening import load_tokenizer
from mini_bert.text.unigram.tokenizer import UnigramTokenizer
from mini_bert.text.unigram.viterbi import Unigram

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

COUNT = int(os.environ.get("MINI_BERT_STRINGS", "2000"))
CHARSMAP = lzma.decompress((Path(__file__).parents[1] / "reference" / "nmt_nfkc_cf.charsmap.xz").read_bytes())
GLUED = ["the", " ", "  ", "▁", "foo", "Bar", "<mask>", "[MASK]", "<sep>", "``", "''", "\n", "\t", "\u0301",
         "\u0323", "E", "e", "ﬁ", "´", "½", "가", "ㅏ", "\u1100", "\u1161", "\u11a8", "क", "\u094d", "ख", "\u200d",
         "©", "❤", "😀", "\u0600", "\u200b", "\u3000", ",", ".", "'", "a", "xyz", "ç", "\u0327", "Å", "Å", "\u0f73",
         "\u0344", "\u09c7", "\u09be", "<0x41>", "Σ", "İ", "\x00", "\x85", "<unk>"]


# ---------------------------------------------------------------- texts and tokenizers

def glued(count: int, seed: int) -> list[str]:
    """Strings of parts where normalizers, clusters and tokens meet."""
    rng = random.Random(seed)
    return ["".join(rng.choices(GLUED, k=rng.randint(1, 10))) for _ in range(count)]


def natural() -> list[str]:
    return [line for name in ("books", "wiki") for line in lines(f"pretrain/{name}.dev.txt")[:1000]]


@pytest.fixture(scope="module")
def pieces() -> list[tuple[str, float]]:
    """Pieces with scores, learned by the reference from natural text where there is some, and some other."""
    try:
        texts = natural()
    except pytest.skip.Exception:
        texts = []
    learner = tokenizers.Tokenizer(models.Unigram())
    learner.normalizer = normalizers.NFKC()
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=4000, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    learner.train_from_iterator([*texts, *strings(100, seed=5)], trainer)
    found = json.loads(learner.to_str())["model"]["vocab"]
    return [(piece, score) for piece, score in found if piece[:1] + piece[-1:] not in ("<>", "[]")]


Pieces = list[tuple[str, float]]


def special(names: str, pieces: Pieces) -> Pieces:
    return [*((name, 0.0) for name in names.split()), *pieces]


def plain(pieces: Pieces, normalizer: Any, pre_tokenizer: Any, decoder: Any, tokens: list[Any] | None = None,
          bytes_too: bool = False) -> Any:
    more = [(f"<0x{byte:02X}>", -20.0) for byte in range(256)] if bytes_too else []
    found = tokenizers.Tokenizer(models.Unigram([("<unk>", 0.0), *more, *pieces], 0, bytes_too))
    found.normalizer = normalizer
    for name, part in (("pre_tokenizer", pre_tokenizer), ("decoder", decoder)):
        if part is not None:
            setattr(found, name, part)
    found.add_tokens(tokens or [])
    return found


def albert(pieces: Pieces) -> Any:
    return transformers.AlbertTokenizer(vocab=special("<pad> <unk> [CLS] [SEP] [MASK]", pieces),
                                        _spm_precompiled_charsmap=CHARSMAP).backend_tokenizer


def albert_cased(pieces: Pieces) -> Any:
    return transformers.AlbertTokenizer(vocab=special("<pad> <unk> [CLS] [SEP] [MASK]", pieces), do_lower_case=False,
                                        keep_accents=True, _spm_precompiled_charsmap=CHARSMAP).backend_tokenizer


def xlnet(pieces: Pieces) -> Any:
    names = "<unk> <s> </s> <cls> <sep> <pad> <mask> <eod> <eop>"
    return transformers.XLNetTokenizer(vocab=special(names, pieces), unk_id=0,
                                       _spm_precompiled_charsmap=CHARSMAP).backend_tokenizer


def deberta(pieces: Pieces) -> Any:
    return transformers.DebertaV2Tokenizer(vocab=special("[PAD] [CLS] [SEP] [UNK]", pieces), unk_id=3).backend_tokenizer


def deberta_by_punctuation(pieces: Pieces) -> Any:
    return transformers.DebertaV2Tokenizer(vocab=special("[PAD] [CLS] [SEP] [UNK]", pieces), unk_id=3,
                                           split_by_punct=True, do_lower_case=True).backend_tokenizer


def deberta_converted(pieces: Pieces) -> Any:
    steps = [normalizers.Strip(), normalizers.Precompiled(CHARSMAP), normalizers.Replace(Regex(" {2,}"), " ")]
    return plain(pieces, normalizers.Sequence(steps), pre_tokenizers.Sequence([pre_tokenizers.Metaspace()]),
                 decoders.Metaspace())


def with_added_tokens(pieces: Pieces) -> Any:
    steps = [normalizers.Precompiled(CHARSMAP), normalizers.Strip(left=False, right=True),
             normalizers.Replace(Regex(" {2,}"), "▁")]
    tokens = [AddedToken("<mask>", lstrip=True, special=True), AddedToken("Bar", normalized=True), AddedToken("é̂"),
              AddedToken("foo", rstrip=True, single_word=True, normalized=True),
              AddedToken("the", single_word=True, lstrip=True, rstrip=True, normalized=False)]
    return plain(pieces, normalizers.Sequence(steps), pre_tokenizers.Metaspace(), decoders.Metaspace(), tokens)


def with_bytes(pieces: Pieces) -> Any:
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return plain(pieces, normalizers.Sequence(steps), None, decoders.Sequence(back), bytes_too=True)


def nmt(pieces: Pieces) -> Any:
    steps = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    split = [pre_tokenizers.Whitespace(), pre_tokenizers.Metaspace(prepend_scheme="never")]
    return plain(pieces, normalizers.Sequence(steps), pre_tokenizers.Sequence(split),
                 decoders.Metaspace(prepend_scheme="never"))


def nfd(pieces: Pieces) -> Any:
    steps = [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    split = [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Metaspace(prepend_scheme="first", split=False)]
    return plain(pieces, normalizers.Sequence(steps), pre_tokenizers.Sequence(split), None)


def nfc(pieces: Pieces) -> Any:
    return plain(pieces, normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="first"),
                 decoders.Metaspace(prepend_scheme="first"))


def nfkd(pieces: Pieces) -> Any:
    return plain(pieces, normalizers.NFKD(), pre_tokenizers.Punctuation("removed"), None)


MADE: list[Callable[[Pieces], Any]] = [albert, albert_cased, xlnet, deberta, deberta_by_punctuation, deberta_converted,
                                       with_added_tokens, with_bytes, nmt, nfd, nfc, nfkd]


@pytest.fixture(scope="module", params=MADE, ids=lambda make: make.__name__)
def theirs(request, pieces) -> Any:
    return request.param(pieces)


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory) -> UnigramTokenizer:
    directory = tmp_path_factory.mktemp("tokenizer")
    theirs.save(str(directory / "tokenizer.json"))
    found = load_tokenizer(directory)
    assert isinstance(found, UnigramTokenizer)
    return found


# ---------------------------------------------------------------- comparison

def differences(ours: UnigramTokenizer, theirs: Any, text: str) -> list[str]:
    expected, found = theirs.encode(text), ours.align(text)
    decoded = [ours.decode(expected.ids, skip_special_tokens=skip) ==
               theirs.decode(expected.ids, skip_special_tokens=skip) for skip in (False, True)]
    checks = {"ids": found.ids == expected.ids, "ids of encode": ours.encode(text) == expected.ids,
              "offsets": found.offsets == expected.offsets, "words": found.word_ids == expected.word_ids,
              "decode": all(decoded)}
    return [name for name, equal in checks.items() if not equal]


def assert_equal(ours: UnigramTokenizer, theirs: Any, texts: list[str]) -> None:
    differ = [(text, what) for text in texts if (what := differences(ours, theirs, text))]
    assert not sorted(differ, key=lambda found: len(found[0]))[:5], f"{len(differ)} of {len(texts)} differ"


def test_natural_text_is_the_same(ours, theirs):
    assert_equal(ours, theirs, natural()[:: 1 if COUNT > 2000 else 10])


def test_made_up_strings_are_the_same(ours, theirs):
    assert_equal(ours, theirs, ["", *glued(COUNT // 2, 5), *strings(COUNT // 3, 7), *runs_of_marks(COUNT // 6, 8)])


def test_pairs_are_the_same(ours, theirs):
    for first, second in zip(glued(20, 1), glued(20, 2), strict=True):
        expected = theirs.encode(first, second)
        assert ours.encode_pair(first, second) == (expected.ids, expected.type_ids)


def test_what_we_save_is_opened_by_tokenizers(ours, tmp_path):
    ours.save(tmp_path / "saved")
    opened = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    assert_equal(ours, opened, glued(50, 9))


def test_ties_are_broken_alike():
    rng = random.Random(1)
    for _ in range(100):
        scored = {"<unk>": 0.0} | {"".join(rng.choices("abcd", k=rng.randint(1, 4))):
                                   rng.choice((-1, -2, -3, -0.5, -0.1, -0.3)) for _ in range(rng.randint(1, 25))}
        pieces = list(scored.items())
        theirs, ours = tokenizers.Tokenizer(models.Unigram(pieces, 0, False)), Unigram(pieces, 0)
        for _ in range(20):
            text = "".join(rng.choices("abcde", k=rng.randint(1, 14)))
            expected = theirs.encode(text)
            assert ours.segment(text) == list(zip(expected.ids, [end for _, end in expected.offsets], strict=True))


@pytest.mark.parametrize("rules", ["nmt_nfkc", "nmt_nfkc_cf", "identity"])
def test_a_model_file_gives_the_ids_of_sentencepiece(rules, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    texts = natural()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(tmp_path / "spm"), vocab_size=3000, model_type="unigram",
        normalization_rule_name=rules, control_symbols=["[CLS]", "[SEP]"], byte_fallback=rules == "identity",
        num_threads=1, minloglevel=2, hard_vocab_limit=False)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    ours = load_tokenizer(tmp_path)
    for text in texts:
        assert ours.ids(text) == theirs.encode(text)


@pytest.mark.parametrize(("model_type", "file", "pieces"), [
    ("albert", "spiece.model", {"control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "pad_id": 0, "unk_id": 1, "bos_id": -1,
                                "eos_id": -1}),
    ("xlnet", "spiece.model", {"control_symbols": ["<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"], "bos_id": -1,
                               "eos_id": -1}),
    ("xlm-roberta", "sentencepiece.bpe.model", {}),
    ("camembert", "sentencepiece.bpe.model", {}),
])
def test_a_model_file_beside_a_config_is_opened_as_transformers_does(model_type, file, pieces, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    texts = (Path(mini_bert.__file__).parent / "pretrained" / "sentences.txt").read_text().splitlines()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(tmp_path / "spm"), vocab_size=300, model_type="unigram",
        num_threads=1, minloglevel=2, hard_vocab_limit=False, **pieces)
    (tmp_path / "spm.model").rename(tmp_path / file)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)
    for text in [*texts, "Naïve CAFÉS", " two  spaces ", "日本"]:
        assert ours.encode(text) == theirs(text)["input_ids"], text
        ids, types = ours.encode_pair(text, texts[0])
        expected = theirs(text, texts[0])
        assert ids == expected["input_ids"], text
        assert types == expected.get("token_type_ids", types), text
