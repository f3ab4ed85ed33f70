"""mini-bert generate: let a causal model write."""

import sys
from typing import Annotated

import typer
from rich.text import Text

from ...inference.generate import generate
from ..output import Output, SeedOption
from .inference import opened


def generate_command(
        prompt: Annotated[str, typer.Argument(metavar="TEXT", help="The beginning of the text; leave it out "
                                                   "to start from nothing.")] = "",
        *, model: Annotated[str, typer.Option("--model", "-m", metavar="DIR", help="A causal model with its tokenizer: "
                                              "the directory of a run, or a GPT-2 from Hugging Face.")],
        tokens: Annotated[int, typer.Option("--tokens", "-n", min=1, help="Number of tokens to write.")] = 100,
        temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="0 always takes the most likely "
                                                                                  "token; values above 1 are more "
                                                                                  "adventurous.")] = 0.8,
        top_k: Annotated[int, typer.Option("--top-k", min=0, help="Choose among this many most likely tokens; 0 for "
                                                                  "all.")] = 40,
        top_p: Annotated[float, typer.Option("--top-p", help="Choose among the fewest tokens whose probabilities sum "
                                             "to this.")] = 0.95,
        samples: Annotated[int, typer.Option("--samples", min=1, help="Number of texts.")] = 1,
        seed: SeedOption = 0, output: Output) -> None:
    """Continue a text with a causal model, token by token.

    Example: mini-bert generate "Once upon a time" --model runs/gpt --tokens 50
    """
    network, tokenizer = opened(model)
    streams = not output.as_json and not output.quiet and sys.stdout.isatty()
    texts = []
    for number in range(samples):
        parts = generate(network, tokenizer, prompt, tokens, temperature=temperature, top_k=top_k, top_p=top_p,
                         seed=seed + number)
        if streams:
            print(prompt, end="", flush=True)
            texts.append("".join(_shown(part) for part in parts))
            print("\n")
        else:
            texts.append("".join(parts))
    result = {"model": model, "prompt": prompt, "seed": seed, "continuations": texts}
    output.result(result, *([] if streams else [Text(prompt + text) for text in texts]))


def _shown(part: str) -> str:
    print(part, end="", flush=True)
    return part
