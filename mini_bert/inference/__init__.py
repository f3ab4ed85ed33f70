"""Using a trained model: filling masks, sentence vectors, pseudo-log-likelihoods."""
