"""Probes: what a simple classifier or a linear map can read from the frozen vectors of a model."""
