"""The explorer: one page in the browser that shows a model's passes with their formulas and numbers."""
