"""How the parameters of a new model begin, beyond the draw that each parameter's spec names."""
