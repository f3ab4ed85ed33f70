"""Everything that changes parameters: optimiser, schedules, the trainer, its threads, checkpoints and log."""
