"""Formulas: text and MathML say the same."""

from xml.etree import ElementTree

import pytest

from mini_bert import InputError
from mini_bert.analysis.passes.formulas import NAMESPACE, Equations


def shape(text: str):
    """The MathML as nested tuples, invisible operators left out."""
    def nested(element):
        tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
        inside = [nested(child) for child in element]
        inside = [child for child in inside if child not in (("mo", "\u2061"), ("mo", "\u2062"))]
        if tag in ("mi", "mn", "mo"):
            return (tag, element.text)
        return inside[0] if tag in ("mrow", "math") and len(inside) == 1 else (tag, *inside)

    return nested(ElementTree.fromstring(Equations((text,)).mathml))


def test_scores():
    assert shape("S = Q K^T / sqrt(d_k)") == (
        "mrow", ("mi", "S"), ("mo", "="),
        ("mfrac", ("mrow", ("mi", "Q"), ("msup", ("mi", "K"), ("mi", "T"))),
         ("msqrt", ("msub", ("mi", "d"), ("mi", "k")))))


def test_a_word_stands_apart_from_the_factor_before_it():
    assert '<mspace width="0.2em"/><mrow><mi>split</mi>' in Equations(("S = Q split(K)",)).mathml
    assert "mspace" not in Equations(("S = Q K_p",)).mathml
    assert "mspace" not in Equations(("S = split(Q) K",)).mathml


def test_a_gradient_has_an_upright_d_and_products_by_element_a_circle():
    assert shape("dx_0 = dy * gamma") == (
        "mrow", ("mrow", ("mi", "d"), ("msub", ("mi", "x"), ("mn", "0"))), ("mo", "="),
        ("mrow", ("mrow", ("mi", "d"), ("mi", "y")), ("mo", "⊙"), ("mi", "γ")))


def test_an_index_stands_right_behind_and_a_condition_apart():
    assert shape("E[ids]") == ("msub", ("mi", "E"), ("mi", "ids"))
    assert shape("a [u > 0]") == (
        "mrow", ("mi", "a"), ("mrow", ("mo", "["), ("mrow", ("mi", "u"), ("mo", ">"), ("mn", "0")), ("mo", "]")))


def test_several_equations_are_rows():
    formula = Equations(("y = a + mu", "mu = mean(x)", "a = x"))
    assert formula.text == "y = a + mu, where mu = mean(x), a = x"
    assert formula.mathml.count("<mtr>") == 3
    assert formula.to_dict() == {"text": formula.text, "mathml": formula.mathml}


@pytest.mark.parametrize("text", ["", "a +", "(a", "a)", "a = = b", "f(x", "a ^"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="formula"):
        _ = Equations((text,)).mathml
