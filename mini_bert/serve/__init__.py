"""Models behind HTTP: `mini-bert serve`, with the addresses of OpenAI and of text-embeddings-inference, and our own.

What a model computes belongs to `inference`, `evaluation` and `analysis`; here are requests, their queue and limits.
"""
