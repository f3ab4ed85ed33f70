"""Commands for using a model."""
