"""Optimisers: from gradients to a step."""
