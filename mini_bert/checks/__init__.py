"""Gradient checks of whole models and heads, and of everything at once. Those of an operation are in its file."""
