"""The solutions, a file each. A stub is its solution with the body of what is to be written cut out."""
