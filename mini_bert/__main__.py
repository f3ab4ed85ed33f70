"""`python -m mini_bert` is `mini-bert`."""

from .cli import main

main()
