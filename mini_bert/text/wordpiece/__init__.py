"""WordPiece: learning a vocabulary, encoding and decoding text, and the tokenizer's files."""
