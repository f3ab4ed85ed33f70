"""A run in a directory: its config, log and checkpoints, beginning and resuming it, and experiments of several runs."""
