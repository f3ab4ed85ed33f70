"""The parts of a comprehensive evaluation: each takes the context, and gives its figures beside their baselines."""
