"""Commands for configs, presets and benchmarks."""
