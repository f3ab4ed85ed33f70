"""Pre-train a small BERT on a folder of text: learn a vocabulary, prepare the corpus, train, and fill a mask.

    python examples/pretrain_on_a_folder.py letters/ --out letters.model --minutes 60

`mini-bert fit` does this and more in one command. This script shows its steps one by one, so that you can change them.
"""

import argparse
import sys
from pathlib import Path

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.sources import ReadingReport, find_sources, paragraphs
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.training.config import load_run_config
from mini_bert.training.runs.run import start_run


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", nargs="+", help="Files or folders of text, one paragraph per line.")
    parser.add_argument("--out", type=Path, required=True, help="A new directory for everything.")
    parser.add_argument("--minutes", type=float, default=60, help="Time for training.")
    parser.add_argument("--config", default="mini", help="The preset: mini, mini-deep, small or larger.")
    parser.add_argument("--vocab-size", type=int, default=8192, help="Largest number of pieces; less for little text.")
    parser.add_argument("--ask", default="It was the [MASK] of the day.", help="A sentence with [MASK].")
    options = parser.parse_args()

    # 1. The vocabulary is learned from the text itself: its own words become whole pieces.
    found = paragraphs(find_sources(options.text), ReadingReport())
    words = count_words(text for text in found if text is not None)       # None separates documents
    tokenizer = WordPieceTokenizer(learn_vocabulary(words, options.vocab_size))
    print(f"{len(tokenizer):,} pieces")

    # 2. The text becomes a file of ids. A part is held out, since the loss on the training text says little. Long
    #    documents are split, so that a part can be held out even if there is only one document.
    corpus = options.out / "corpus"
    prepare(options.text, tokenizer, corpus, heldout=0.03, longest_document=4096)

    # 3. Training, with a time budget instead of a number of steps: the schedule is fitted to it.
    model, training = load_run_config(options.config, [f"model.vocab_size={len(tokenizer)}",
                                                       f"training.budget={max(1, round(options.minutes * 60))}s"])
    trainer = start_run(model, training, corpus, options.out / "run")
    state = trainer.train()
    print(f"{state.step:,} steps, {state.tokens:,} tokens")

    # 4. The model with the lowest loss on the held-out text is in run/best; any command takes it as --model.
    best = options.out / "run" / "best"
    print(mini_bert.pipeline(best).fill_mask(options.ask))
    print(f"More: mini-bert doctor {options.out / 'run'}, mini-bert fill-mask --model {best} TEXT")


if __name__ == "__main__":
    try:
        main()
    except (mini_bert.MiniBertError, OSError) as error:       # one sentence instead of a traceback
        sys.exit(str(error))
