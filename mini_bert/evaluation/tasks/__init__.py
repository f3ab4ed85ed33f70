"""Fine-tuning tasks: encoding of examples, metrics, baselines, runs over several seeds, and saved task models."""
