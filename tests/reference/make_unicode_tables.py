"""Write the unicode_tables.py of wordpiece and byte_bpe: how the reference tokenizers class every character.

Run it where `tokenizers` is installed: .venv-parity/bin/python tests/reference/make_unicode_tables.py

The reference keeps tables of an older Unicode than Python does, and Python's differ between its own
versions. So each of the 1,112,064 characters is put through the reference once, and the answer is stored.
"""

from pathlib import Path
from unicodedata import combining, normalize

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TEXT = Path(__file__).parents[2] / "mini_bert" / "text"
OFF = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}


def normalise(**options: bool) -> normalizers.Normalizer:
    return normalizers.BertNormalizer(**{**OFF, **options})


def ranges(characters: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for c in characters:
        if found and c == found[-1][1] + 1:
            found[-1] = (found[-1][0], c)
        else:
            found.append((c, c))
    return found


def literal(name: str, comment: str, characters: list[int]) -> str:
    words = [f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in ranges(characters)]
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 100:
            lines.append(line.rstrip())
            line = ""
        line += word + " "
    lines.append(line.rstrip())
    body = "\n".join(f'    "{text} "' for text in lines)
    return f"# {comment}\n{name} = CharacterSet(\n{body}\n)\n"


def is_sorted(c: int) -> bool:
    """Has it a combining class but 0? Only then a mark of class 1 behind it passes one of class 230 before it."""
    found = normalizers.NFD().normalize_str(f"\u0301{chr(c)}\u0334")
    return found.index("\u0334") < found.index("\u0301")


def check_classes(marks: list[int]) -> None:
    """Fail unless the reference sorts each mark as Python's combining class says, against one mark of each class."""
    nfd = normalizers.NFD().normalize_str
    for other in {combining(chr(c)): chr(c) for c in marks}.values():
        for c in marks:
            for text in (chr(c) + other, other + chr(c)):
                if nfd(text) != "".join(sorted(text, key=combining)):
                    raise SystemExit(f"U+{c:04X} has another combining class in the reference.")


def check_decompositions(decomposed: list[int]) -> None:
    nfd = normalizers.NFD().normalize_str
    for c in decomposed:
        if nfd(chr(c)) != normalize("NFD", chr(c)):
            raise SystemExit(f"U+{c:04X} has another decomposition in the reference.")


def main() -> None:
    clean, strip, chinese = (normalise(**{option: True})
                             for option in ("clean_text", "strip_accents", "handle_chinese_chars"))
    split = pre_tokenizers.BertPreTokenizer()
    every = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    removed = [c for c in every if clean.normalize_str(f"a{chr(c)}b") == "ab"]
    spaces = [c for c in every if clean.normalize_str(f"a{chr(c)}b") == "a b"]
    marks = [c for c in every if strip.normalize_str(f"a{chr(c)}") == "a"]
    cjk = [c for c in every if chinese.normalize_str(chr(c)) != chr(c)]
    punctuation = [c for c in every if [w for w, _ in split.pre_tokenize_str(f"a{chr(c)}b")] == ["a", chr(c), "b"]]
    nfd = normalizers.NFD().normalize_str
    decomposed = [c for c in every if nfd(chr(c)) != chr(c)]
    combining_marks = [c for c in every if nfd(chr(c)) == chr(c) and is_sorted(c)]
    check_decompositions(decomposed)
    check_classes(combining_marks)
    standing = {chr(c) for c in combining_marks} - {chr(c) for c in marks}
    lower = normalise(lowercase=True)
    newer = {c: lower.normalize_str(chr(c)) for c in every if lower.normalize_str(chr(c)) != chr(c).lower()}
    mapping = "".join(f"    0x{c:x}: {small!a},\n" for c, small in newer.items())
    parts = [
        literal("REMOVED", "control, format and private-use characters, which cleaning deletes", removed),
        literal("SPACES", "what becomes a space", spaces),
        literal("MARKS", "non-spacing marks, which stripping accents deletes", marks),
        literal("DECOMPOSED", "what has a canonical decomposition, the one that unicodedata gives", decomposed),
        literal("COMBINING", "what has a combining class, the one that unicodedata gives, and is sorted by it",
                combining_marks),
        literal("STANDING", "what has a combining class but is not deleted with the accents, alone or as a part",
                [c for c in every if standing.intersection(nfd(chr(c)))]),
        literal("CJK", "ideographs, each a word of its own", cjk),
        literal("PUNCTUATION", "punctuation, each a word of its own", punctuation),
        f"# small letters of capitals that Python 3.11 does not know yet\nLOWER = {{\n{mapping}}}\n",
    ]
    head = f'''"""How BERT's tokenizer classes characters: written by tests/reference/make_unicode_tables.py.

The reference is tokenizers {tokenizers.__version__}. Its tables follow an older Unicode than Python's, and are
kept here so that the same text gives the same ids under every version of Python.
"""

from ..characters import CharacterSet

'''
    (TEXT / "wordpiece" / "unicode_tables.py").write_text(head + "\n".join(parts), "utf-8")


def members(pattern: str) -> list[int]:
    """The characters that a pattern of one character matches in the reference."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    text = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    blocks = (text[i : i + 4096] for i in range(0, len(text), 4096))
    return sorted({ord(letter) for block in blocks for word, _ in split.pre_tokenize_str(block) for letter in word})


def byte_level() -> None:
    parts = [literal("LETTERS", "\\p{L}", members(r"\p{L}")), literal("NUMBERS", "\\p{N}", members(r"\p{N}")),
             literal("SPACES", "\\s", members(r"\s"))]
    head = f'''"""What GPT-2's pattern takes for letters, numbers and white space.

Written by tests/reference/make_unicode_tables.py. The reference is tokenizers {tokenizers.__version__}. Its Unicode is
newer than that of some versions of Python; these tables give the same ids under every one.
"""

from ..characters import CharacterSet

'''
    (TEXT / "byte_bpe" / "unicode_tables.py").write_text(head + "\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
    byte_level()
