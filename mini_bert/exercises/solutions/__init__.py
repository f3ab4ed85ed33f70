"""The solutions, one file each. A stub is the solution without the body of the function to write."""
