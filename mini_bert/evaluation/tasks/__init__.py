"""Fine-tuning tasks: examples as batches, the figures of a task, baselines, and runs over several seeds."""
