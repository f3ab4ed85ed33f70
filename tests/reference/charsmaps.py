"""Making SentencePiece's precompiled character maps, for tests and for the tables of characters."""

import struct


def charsmap(rules: dict[str, str]) -> bytes:
    """A double-array trie of the rules' keys, preceded by its size and followed by the replacements, each ending in 0.

    Every node of the trie has a block of 256 units: a unit is found at the block's start XOR the next byte.
    """
    blob, trie = b"", {}
    for key, value in rules.items():
        node: dict[int, object] = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})          # type: ignore[assignment]
        node[-1] = len(blob)
        blob += value.encode() + b"\0"
    blocks = [[256 << 10, *[0] * 255]]                # the root's unit leads to block 1

    def build(node: dict[int, object]) -> int:
        place = len(blocks) * 256
        block = [0] * 256
        blocks.append(block)
        for byte, child in node.items():
            if byte == -1:
                block[0] = 1 << 31 | child            # type: ignore[operator]
            else:
                offset = (place + byte) ^ build(child)        # type: ignore[arg-type]
                block[byte] = offset << 10 | (-1 in child) << 8 | byte    # type: ignore[operator]
        return place

    build(trie)
    units = [unit for block in blocks for unit in block]
    packed = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(packed)) + packed + blob
