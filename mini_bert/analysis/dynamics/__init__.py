"""How a model learns: gradients, weights and losses over a run."""
