"""The geometry, similarity and stability of a model's vectors."""
