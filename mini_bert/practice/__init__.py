"""A folder to try everything on: small files of every kind that commands read, and a short training run."""
