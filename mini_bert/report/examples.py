"""A masked sentence and the model's candidates, as HTML."""

from html import escape

from ..inference.examples import Example


def example_html(example: Example) -> str:
    """The sentence, the masked word, and the candidates with bars for their probabilities."""
    text = escape(example.text).replace("[MASK]", "<b>[MASK]</b>", 1)
    bars = "".join(
        f'<tr{" class=right" if word.token == example.truth else ""}><td>{escape(word.token)}</td>'
        f'<td class="number">{word.probability:.1%}</td><td style="width:60%">'
        f'<span class="bar" style="width:{100 * word.probability:.1f}%"></span></td></tr>'
        for word in example.candidates)
    return f"<p>{text} <small>(masked: {escape(example.truth)})</small></p><table>{bars}</table>"
