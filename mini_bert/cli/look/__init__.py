"""Commands for looking into a model or a run."""
