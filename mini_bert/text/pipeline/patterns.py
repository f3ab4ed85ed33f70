"""The regular expressions of a tokenizer.json, as far as they mean the same to `re` as to Oniguruma, its own engine.

Literal characters, `.`, sets in brackets, \\s, \\S, quantifiers and alternatives are read. Groups are not: without them
no pattern from a stranger's file can take exponential time, and the tokenizers of the family need none.
"""

import re
from re import Pattern

from ...errors import VocabularyError

SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"       # Unicode's white space, for brackets
SPACES = frozenset(re.findall(f"[{SPACE}]", "".join(map(chr, range(0x3001)))))
_LONGEST = 100
_TOKEN = re.compile(r"\\(?:[nrtfv]|[^0-9A-Za-z])|\\[sS]|\[\^?|\]|[^\\\[\]]", re.DOTALL)


def compile_pattern(source: str, where: str) -> Pattern[str]:
    """The pattern; refused if `re` could understand it in another way."""
    translated, done, inside = "", 0, False
    while done < len(source) <= _LONGEST:
        found = _TOKEN.match(source, done)
        token = found[0] if found else ""
        if not token or token in "()" or (inside and (token[0] == "[" or token == "\\S" or source[done : done + 2] in
                                                      ("&&", "--", "||", "~~"))):
            break
        if token in ("\\s", "\\S"):
            negated = "^" if token == "\\S" else ""
            token = SPACE if inside else f"[{negated}{SPACE}]"
        elif token[0] in "[]":
            inside = token[0] == "["
        translated, done = translated + token, done + (len(found[0]) if found else 0)
    try:
        made = re.compile(translated, re.MULTILINE) if done == len(source) else None
    except (re.error, OverflowError, RecursionError):
        made = None
    if made is None or made.fullmatch(""):
        raise VocabularyError(f"{where}: the pattern {source[:60]!r} is not supported: it must match at least one "
                              "character, and have characters, sets in brackets, \\s, quantifiers and alternatives.")
    return made
