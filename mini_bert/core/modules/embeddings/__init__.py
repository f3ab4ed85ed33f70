"""From ids to the input of the first layer."""
