"""Normalisations of rows. A norm is made from (config, name, layer); its parameters carry the name."""

from . import layernorm, rmsnorm

__all__ = ["layernorm", "rmsnorm"]
