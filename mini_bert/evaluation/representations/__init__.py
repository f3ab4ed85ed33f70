"""A model's vectors: geometry, word similarity, stability under perturbation, composition."""
