"""Trained models that PyPI carries, beside transformers: an ALBERT of chemical reactions and a BERT of antibodies."""

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import mini_bert

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

REACTIONS = ["CC(=O)O.OCC>>CC(=O)OCC.O", "c1ccccc1N.CC(=O)Cl>>CC(=O)Nc1ccccc1", "OCC>>CC=O"]
ANTIBODIES = ["EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLRSEDTAVYYCAAPYCSS",
              "DVVMTQTPFSLPVSLGDQASISCRSSQSLVHSNGNTYLHWYLQKPGQSPKLLIYKVSNRFSGVPDRFSGSGSGTDFTLKISRVEAEDLGVYFCSQSTHVPYTFG"]


def directory_of(package: str) -> Path:
    """The directory of a package's weights."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed; `make parity` installs it")
    return next(Path(str(file.locate())).parent for file in files if file.name == "pytorch_model.bin")


def encoded(texts: list[str], vocabulary: Path) -> tuple[np.ndarray, np.ndarray]:
    """One id for each character, between [CLS] and [SEP], padded; and the mask."""
    ids = {piece: number for number, piece in enumerate(vocabulary.read_text().split("\n"))}
    rows = [[ids["[CLS]"], *(ids.get(letter, ids["[UNK]"]) for letter in text), ids["[SEP]"]] for text in texts]
    mask = np.arange(max(map(len, rows))) < np.array([len(row) for row in rows])[:, None]
    batch = np.full(mask.shape, ids["[PAD]"])
    batch[mask] = np.concatenate(rows)
    return batch, mask


@pytest.mark.parametrize(("package", "kind", "texts", "vocabulary", "count"), [
    ("rxnmapper", "AlbertForMaskedLM", REACTIONS, "vocab.txt", 801_359),
    ("antiberty", "BertForMaskedLM", ANTIBODIES, "../vocab.txt", 26_022_425),
])
def test_trained_models_give_the_same_outputs(package, kind, texts, vocabulary, count):
    directory = directory_of(package)
    model = mini_bert.load(directory)                               # pytorch_model.bin, which is read and not run
    assert model.get_parameter_count() == count
    reference = getattr(transformers, kind).from_pretrained(directory, attn_implementation="eager").eval()
    ids, mask = encoded(texts, directory / vocabulary)
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask).long()}
    with torch.no_grad():
        hidden = reference.base_model(**inputs).last_hidden_state.numpy()
        expected = reference(**inputs).logits.numpy()
    ours, _ = model.encode(ids, mask)
    logits, _ = model.forward(ids, mask)
    differences = np.abs(ours - hidden)[mask].max(), np.abs(logits - expected)[mask].max()
    print(f"{package}: hidden states differ by at most {differences[0]:.1e}, logits by {differences[1]:.1e}")
    assert differences[0] <= 1e-5
    assert differences[1] <= 1e-4
    assert np.array_equal(logits.argmax(axis=-1)[mask], expected.argmax(axis=-1)[mask])
