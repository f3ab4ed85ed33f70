"""Data sets in the formats that others use: one file a format, each giving plain records.

A line that is not what it should be is refused with its file and number; nothing is guessed or skipped.
"""
