"""Commands for learning: exercises, gradient checks, the self-test."""
