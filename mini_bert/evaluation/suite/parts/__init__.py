"""The parts of the comprehensive evaluation: each takes the context and returns scores with baselines."""
