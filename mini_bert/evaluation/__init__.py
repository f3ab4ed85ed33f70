"""Numbers about a model: predictions, representations, probes, fine-tuning, zero-shot tests, and all of them together.

Arrays that explain a model are in `analysis`.
"""
