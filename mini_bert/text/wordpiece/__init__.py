"""WordPiece: learning a vocabulary, text to ids and back, and the tokenizer's files."""
