"""Every command, by what it writes."""

from directory_commands import DIRECTORY_COMMANDS
from file_commands import FILE_COMMANDS

COMMANDS = [*DIRECTORY_COMMANDS, *FILE_COMMANDS]          # that write, and are tortured
CACHING = {"probe", "agreement", "facts", "similarity"}   # write their result to the cache alone, as blimp does
READING = {"selftest", "gradcheck", "exercise list", "exercise solution", "exercise run", "tokenizer encode",
           "tokenizer decode", "tokenizer inspect", "data show", "find-lr", "overfit", "fill-mask", "similar", "score",
           "explore", "doctor", "config", "presets", "memory", "bench train",
           "bench profile", "bench scaling", "generate", "plan", "serve"}
COMPOSED = {"new practice"}           # makes its files by commands of this list, each where it is not there yet
