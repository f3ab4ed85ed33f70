"""The doctor: what a run's log and checkpoint say about its health."""
