"""Answers with a trained model: words for masks, vectors for sentences, likelihoods."""
