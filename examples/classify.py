"""Fine-tune a model to classify texts, compare it with baselines, and use it.

    python examples/classify.py reviews/train.tsv reviews/dev.tsv --out reviews.model "a warm and funny film"

The tables have a text and a label in each row. `mini-bert finetune` does the same.
"""

import argparse
import sys
from pathlib import Path

import mini_bert


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("train", help="Labelled texts to train on.")
    parser.add_argument("dev", help="Labelled texts for early stopping.")
    parser.add_argument("texts", nargs="*", help="Texts to classify afterwards.")
    parser.add_argument("--test", help="Labelled texts to measure on; without, dev is used.")
    parser.add_argument("--model", default="mini", help="A shipped model, or a directory with a BERT model.")
    parser.add_argument("--out", type=Path, required=True, help="Where to save the classifier.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3, help="Number of runs; on small data one run says little.")
    options = parser.parse_intermixed_args()      # texts may follow the options

    # The same model is also trained from random weights: the difference is what pre-training is worth. A classifier
    # that does not beat the majority and a bag of words is useless.
    tuned = mini_bert.finetune(options.train, options.dev, test=options.test, model=options.model, out=options.out,
                               epochs=options.epochs, seeds=options.seeds)
    print(tuned)
    if options.texts:
        print(tuned.pipeline.predict(options.texts))


if __name__ == "__main__":
    try:
        main()
    except (mini_bert.MiniBertError, OSError) as error:       # one sentence instead of a traceback
        sys.exit(str(error))
