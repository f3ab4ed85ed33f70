"""What architectures do around a SentencePiece model, which its file does not say.

    ALBERT         takes accents off and lowers case before
    XLNet          takes accents off before
    XLM-RoBERTa    has <s> <pad> </s> <unk> in the place of the model's <unk> <s> </s>, and <mask> behind its pieces
    CamemBERT      has <s>NOTUSED <pad> </s>NOTUSED <unk> before the model's pieces, and <mask> behind them

Which of them a directory is of, config.json says (`model_type`), or tokenizer_config.json (`tokenizer_class`). Files
named sentencepiece.bpe.model are those of architectures that number the pieces anew: where neither says which, such a
file is refused, since its own ids are no model's.
"""

from dataclasses import dataclass, replace

from ...errors import VocabularyError
from ...readers import read_json_if_there
from ..tokenizer_files import TokenizerFiles
from .sentencepiece import CONTROL, UNKNOWN, SentencePieceModel

RENUMBERED = "sentencepiece.bpe.model"
_OWN = ("<unk>", "<s>", "</s>")               # the first pieces of a model that nobody has given others


@dataclass(frozen=True)
class Convention:
    """The defaults of cleaning, and the pieces before and behind those of the model."""

    lowercase: bool = False
    strip_accents: bool = False
    before: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()                # what becomes of the model's own first pieces, if there are others before
    behind: tuple[str, ...] = ()
    around: tuple[str, str] | None = None     # a text, and two

    def applied(self, model: SentencePieceModel, source: str) -> SentencePieceModel:
        """The model with the pieces, and so the ids, of the architecture."""
        if not self.before:
            return model
        count = len(_OWN)
        if tuple(piece for piece, _, _ in model.pieces[:count]) != _OWN:
            raise VocabularyError(f"{source}: the pieces of such a model begin with {' '.join(_OWN)}; these do not.")
        special = [(piece, 0.0, UNKNOWN if piece == "<unk>" else CONTROL) for piece in (*self.before, *self.kept)]
        behind = [(piece, 0.0, CONTROL) for piece in self.behind]
        return replace(model, pieces=[*special, *model.pieces[count:], *behind])


_PAIRS = ("<s> $A </s>", "<s> $A </s> </s> $B </s>")
_CONVENTIONS = {
    "albert": Convention(lowercase=True, strip_accents=True),
    "xlnet": Convention(strip_accents=True),
    "xlmroberta": Convention(before=("<s>", "<pad>", "</s>", "<unk>"), behind=("<mask>",), around=_PAIRS),
    "camembert": Convention(before=("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>"),
                            kept=("<unk>NOTUSED", "<s>", "</s>"), behind=("<mask>",), around=_PAIRS),
}


def convention_of(files: TokenizerFiles, name: str) -> Convention:
    """The convention for the .model file of this name."""
    model = read_json_if_there(files.directory / "config.json", VocabularyError) or {}
    for said in (model.get("model_type"), (files.config or {}).get("tokenizer_class")):
        word = str(said).lower().replace("-", "").removesuffix("fast").removesuffix("tokenizer")
        if word in _CONVENTIONS:
            return _CONVENTIONS[word]
    if name == RENUMBERED:
        raise VocabularyError(f"{files.directory / name}: architectures number the pieces of such a file anew, and "
                              "neither config.json (model_type) nor tokenizer_config.json (tokenizer_class) says which "
                              "one this is: xlm-roberta or camembert.")
    return Convention()
