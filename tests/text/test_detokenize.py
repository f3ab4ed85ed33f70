"""The spacing of decoded text."""

import pytest

from mini_bert.text.wordpiece.detokenize import detokenize


@pytest.mark.parametrize(("spaced", "text"), [
    ("un ##aff ##able", "unaffable"),
    ("in 1990 , 20 men", "in 1990, 20 men"),
    ("in 1990 , 200 men", "in 1990, 200 men"),
    ("1 , 000 , 000 men", "1,000,000 men"),
    ("on 4 , 100 , 20 and 0 , 100", "on 4, 100, 20 and 0, 100"),
    ("1 , 234 . 50 and 3 . 14", "1,234.50 and 3.14"),
    ("in 1990 . 20 men", "in 1990. 20 men"),
    ("version 3 . 11 . 2 at 10 : 30 .", "version 3.11.2 at 10:30."),
    ("note : 30 men", "note: 30 men"),
    ("don ' t , it ' s the cat ' s", "don't, it's the cat's"),
    ("six o ' clock", "six o'clock"),
    ("he said ' yes ' to", "he said ' yes ' to"),                # may be a quotation mark: keeps its spaces
    ("a well - known and / or 1914 – 18", "a well-known and/or 1914–18"),
    ("yes - - but no — never", "yes--but no—never"),
    ("one – two", "one – two"),
    ('" yes , " he said , " or no . "', '"yes," he said, "or no."'),
    ('" yes " and a 3 " pipe', '"yes" and a 3 " pipe'),          # unpaired: keeps its spaces
    ("[CLS] ( yes ) [MASK] . [SEP]", "[CLS] (yes) [MASK]. [SEP]"),
    ("it cost $ 5 , not € 20 or $ [MASK]", "it cost $5, not €20 or $[MASK]"),
    ("hosting ##€ of", "hosting€ of"),                           # a letter of the word, for a tokenizer
    ("the € of", "the € of"),
    ("", ""),
])
def test_spacing_is_as_people_write(spaced, text):
    assert detokenize(spaced.split()) == text
