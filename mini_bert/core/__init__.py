"""The mathematics: every formula of BERT and its gradient, in NumPy."""
