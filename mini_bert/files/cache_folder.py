"""The cache folder for results that can be recomputed: MINI_BERT_CACHE, or mini-bert in the user's cache folder."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder; it may not exist, and may be deleted at any time."""
    chosen = os.environ.get("MINI_BERT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mini-bert"
