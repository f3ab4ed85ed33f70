"""Readers of published data sets, one file per format. Each returns plain records.

A malformed line is refused with its file and line number; nothing is guessed or skipped.
"""
