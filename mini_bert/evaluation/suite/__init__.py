"""All measurements of a model in one report, and the cache of their results."""
