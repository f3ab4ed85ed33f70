"""Write mini_bert/text/pipeline/unicode_tables.py: how the parts of a tokenizer.json class characters.

Run it where `tokenizers` is installed: .venv-parity/bin/python tests/reference/make_pipeline_tables.py

As in make_unicode_tables.py, each character is put through the reference once. Grapheme clusters cannot be seen from
outside. But the normalizer `Precompiled` looks at clusters of less than six bytes as wholes, so that a map of one
letter shows what stands in one cluster with the letter.
"""

from pathlib import Path

import tokenizers
from charsmaps import charsmap
from make_unicode_tables import literal
from tokenizers import normalizers, pre_tokenizers

TARGET = Path(__file__).parents[2] / "mini_bert" / "text" / "pipeline" / "unicode_tables.py"


def main() -> None:
    every = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    strip, words = normalizers.StripAccents().normalize_str, pre_tokenizers.Whitespace().pre_tokenize_str
    mapped = normalizers.Precompiled(charsmap({"a": "X", "\xa9": "Y"})).normalize_str
    joined = [c for c in every if mapped(f"a{chr(c)}") == "X"]
    before = [c for c in every if mapped(f"{chr(c)}a\u0301") == f"{chr(c)}X\u0301"]
    basic = [c for c in every[1:] if c < 0x10000 and c != 0x301]    # others have too many bytes to matter
    controls, consonants = [0], []
    for start in range(0, len(basic), 4000):
        some = basic[start : start + 4000]
        each = normalizers.Precompiled(charsmap({chr(c): "X" for c in some})).normalize_str
        controls += [c for c in some if each(f"{chr(c)}\u0301") != "X"]
        consonants += [c for c in some if c > 0x7FF and each(f"\u0915\u094d{chr(c)}\u0301").endswith("\u0301")
                       and c not in {*joined, *controls}]
    one = normalizers.Precompiled(charsmap({"\u0916": "X"})).normalize_str
    parts = [
        literal("COMPATIBLE", "what NFKD decomposes in another way than NFD, the one that unicodedata has",
                [c for c in every if nfkd(chr(c)) != nfd(chr(c))]),
        literal("ACCENTS", "marks of all kinds, which StripAccents deletes", [c for c in every if not strip(chr(c))]),
        literal("WORD", "what the pattern \\w matches", [c for c in every if len(words(f"a{chr(c)}")) == 1
                                                         and words(f"a{chr(c)}")[0][0] == f"a{chr(c)}"]),
        literal("JOINED", "what stands in one grapheme cluster with a letter before it", joined),
        literal("PREPENDED", "what stands in one grapheme cluster with a letter after it", before),
        literal("CONTROLS", "what stands in no grapheme cluster with what follows, of less than four bytes", controls),
        literal("CONSONANTS", "what a virama joins to the consonant before it", consonants),
        literal("LINKERS", "viramas", [c for c in joined if one(f"\u0915{chr(c)}\u0916\u0301").endswith("\u0301")]),
        literal("PICTURES", "pictographs, which a zero-width joiner joins",
                [c for c in every if mapped(f"\xa9\u200d{chr(c)}").startswith("Y\u200d") and c not in joined]),
    ]
    head = f'''"""How the parts of a tokenizer.json class characters.

Written by tests/reference/make_pipeline_tables.py. The reference is tokenizers {tokenizers.__version__}; what it shares
with BERT's tokenizer is in wordpiece/unicode_tables.py.
"""

from ..characters import CharacterSet

'''
    TARGET.write_text(head + "\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
