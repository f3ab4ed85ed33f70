"""Words of a config for what a run sees: how hard a sequence is, how fast a curriculum opens, and how likely each token
is to be masked. One word or one kind of word a file; how they are used is in mini_bert/text."""

from . import adaptive, difficulty, pacing

__all__ = ["adaptive", "difficulty", "pacing"]
