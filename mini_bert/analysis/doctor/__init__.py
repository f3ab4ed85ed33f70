"""The doctor diagnoses a training run from its log, checkpoints and corpus."""
