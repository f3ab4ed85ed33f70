"""What a row of a batch is made of: windows of running text, single sentences, and pairs of them."""
