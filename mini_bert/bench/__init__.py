"""Measuring a training step, alone and beside PyTorch. The only part of the package that knows PyTorch."""
