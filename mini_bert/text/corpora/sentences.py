"""Splitting a paragraph into sentences: at . ! or ? before a capital, but not after an abbreviation."""

import re

# closing quotes after the end of a sentence, then space, before what may begin the next one
_BORDER = re.compile(r"""(?<=[.!?])["'”’)\]]*\s+(?=["'“‘(\[]*[A-Z0-9À-ÖØ-Þ])""")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:(?:[A-Z]\.)*[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|e\.g|i\.e|cf|Vol|vol|pp|p|ca|c|Gen|Col|"
    r"Capt|Lt|Sgt|Rev|Hon|Gov|Sen|Rep|Mt|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|Fig|fig)\.$")


def split_sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, in order and without the spaces between them."""
    found, start = [], 0
    for border in _BORDER.finditer(paragraph):
        end = border.end()
        if not _ABBREVIATION.search(paragraph[max(start, border.start() - 12) : border.start()]):
            found.append(paragraph[start:end].rstrip())
            start = end
    found.append(paragraph[start:])
    return found
