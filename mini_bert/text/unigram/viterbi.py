"""Unigram: the most probable segmentation of a text into pieces, found by Viterbi's algorithm.

Every piece p has a probability, stored as its logarithm s(p). Pieces are taken to be independent, so a segmentation
x = p_1 p_2 ... p_n has the probability P = P(p_1) ... P(p_n), and

    log P = s(p_1) + ... + s(p_n)

The best score of the first j characters is that of the first i, plus the piece from i to j, for the best i:

    best(0) = 0,    best(j) = max over i < j with x[i:j] in the vocabulary of best(i) + s(x[i:j])

One pass from left to right fills `best` and notes where the last piece of each prefix begins; following these notes
from the end gives the segmentation. With pieces of at most k characters it takes O(n k) steps, although there are
2^(n-1) segmentations.

    h -4    u -4    g -4    hu -5    ug -3.5    hug -9          "hug":   h ug   -7.5   <- best
                                                                         hu g   -9
                                                                         hug    -9
                                                                         h u g  -12

A character that is no piece is unknown, with the score of the worst piece minus 10; unknown characters in a row are one
token. Of equal scores the one found first stays, that is, the one whose last piece is longest.
"""

from collections.abc import Sequence

from ...errors import VocabularyError

UNKNOWN_PENALTY = 10.0
_SHORT = 2                    # pieces up to this length are looked up everywhere


class Unigram:
    """Pieces with scores, and the segmentation of a text by them."""

    def __init__(self, pieces: Sequence[tuple[str, float]], unk: int | None, *, byte_fallback: bool = False):
        self.pieces, self.unk, self.byte_fallback = pieces, unk, byte_fallback
        self.scored = {piece: (score, i) for i, (piece, score) in enumerate(pieces)}
        self.unknown_score = min((score for _, score in pieces), default=0.0) - UNKNOWN_PENALTY
        self.longest: dict[str, int] = {}         # by three characters: the length of the longest piece they begin
        for piece, _ in pieces:
            if len(piece) > _SHORT:
                self.longest[piece[:3]] = max(self.longest.get(piece[:3], 0), len(piece))
        self.bytes = [self.scored.get(f"<0x{byte:02X}>", (0.0, -1))[1] for byte in range(256)]

    def segment(self, text: str) -> list[tuple[int, int]]:
        """(id, end) of each token of the text, in order; a token begins where the one before it ends."""
        whole = self.scored.get(text)
        if len(text) == 1 and whole is not None:
            return [(whole[1], 1)]
        size = len(text)
        best = [0.0] * (size + 1)                 # the score of the best segmentation of each prefix,
        ids = [-1] * (size + 1)                   # the id of its last piece,
        starts = [-1] * (size + 1)                # and where that begins: -1 if nothing is found yet
        scored, longest = self.scored, self.longest
        for start in range(size):
            here, single = best[start], False
            stop = start + longest.get(text[start : start + 3], _SHORT)
            for end in range(start + 1, (stop if stop < size else size) + 1):
                found = scored.get(text[start:end])
                if found is not None:
                    score = here + found[0]
                    if starts[end] < 0 or score > best[end]:
                        best[end], ids[end], starts[end] = score, found[1], start
                    if end == start + 1:
                        single = True
            if not single:
                score = here + self.unknown_score
                if starts[start + 1] < 0 or score > best[start + 1]:
                    if self.unk is None:
                        raise VocabularyError(f"The character {text[start]!r} is not in the vocabulary, which has no "
                                              "token for unknown characters.")
                    best[start + 1], ids[start + 1], starts[start + 1] = score, self.unk, start
        found_back: list[tuple[int, int]] = []
        end = size
        while end:
            if not (found_back and ids[end] == self.unk == found_back[-1][0]):        # unknown ones in a row are one
                found_back.append((ids[end], end))
            end = starts[end]
        return self._tokens(text, found_back[::-1])

    def _tokens(self, text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Unknown tokens by another name: joined they may spell a piece, and with `byte_fallback` they are bytes."""
        if all(i != self.unk for i, _ in found):
            return found
        tokens: list[tuple[int, int]] = []
        start = 0
        for i, end in found:
            if i == self.unk:
                spelled = text[start:end]
                data = spelled.encode("utf-8")
                if spelled in self.scored:
                    i = self.scored[spelled][1]
                elif self.byte_fallback and all(self.bytes[byte] >= 0 for byte in data):
                    tokens += [(self.bytes[byte], end) for byte in data]
                    start = end
                    continue
            tokens.append((i, end))
            start = end
        return tokens
