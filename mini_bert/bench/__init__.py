"""Measuring a training step, alone and beside peers that run in processes of their own."""
