"""What each address of the server answers: a function of a call for each, by whose interface it follows."""
