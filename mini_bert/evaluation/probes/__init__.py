"""Probes: what can be read from vectors that stay as they are."""
