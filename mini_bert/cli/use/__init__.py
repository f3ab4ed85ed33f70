"""Commands that apply a trained model to text."""
