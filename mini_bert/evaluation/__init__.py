"""Everything that returns a number about a model."""
