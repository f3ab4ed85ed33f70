"""Zero-shot tests, which train nothing: minimal pairs, subject-verb agreement, facts."""
