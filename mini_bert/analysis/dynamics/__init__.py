"""How a model learns: gradients, weights and losses during training."""
