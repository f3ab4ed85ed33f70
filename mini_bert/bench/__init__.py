"""Benchmarks of a training step, alone or against other libraries, each in its own process."""
