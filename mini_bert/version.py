"""The version, where the build finds it without importing NumPy."""

__version__ = "0.1.0"
