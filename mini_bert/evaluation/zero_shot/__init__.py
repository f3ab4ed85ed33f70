"""What a model knows without training: minimal pairs, agreement, facts."""
