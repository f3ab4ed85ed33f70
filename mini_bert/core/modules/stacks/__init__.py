"""Stacks: how the layers of a model are run, one after the other or one layer again and again."""

from . import enhanced_decoder, plain, recurrent, shared, two_stream

__all__ = ["enhanced_decoder", "plain", "recurrent", "shared", "two_stream"]
