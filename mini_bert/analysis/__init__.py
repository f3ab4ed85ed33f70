"""Arrays that explain a model and its training: what it computes, how it learns, and what ails it."""
