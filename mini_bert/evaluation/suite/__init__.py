"""The comprehensive evaluation: all measurements of a model in one report, with a cache of results."""
