"""Fine-tune a model to classify texts, compare it with baselines, and use it.

    python examples/classify.py reviews/train.tsv reviews/dev.tsv --out reviews.model "a warm and funny film"

The tables have a header line with the columns `sentence` and `label`. `mini-bert finetune` does the same.
"""

import argparse
import sys
from pathlib import Path

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.evaluation.tasks.answers import answer_lines
from mini_bert.evaluation.tasks.run import run_task, usual_learning_rate
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.evaluation.tasks.task_names import Classification
from mini_bert.training.finetune import FinetuneConfig
from mini_bert.training.workers import workers


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

    model, tokenizer = mini_bert.load(options.model), WordPieceTokenizer.load(options.model)
    task = Classification(options.train, options.dev, tokenizer, model.config, test=options.test)
    config = FinetuneConfig(epochs=options.epochs, learning_rate=usual_learning_rate(model))

    # The same model is also trained from random weights: the difference is what pre-training is worth.
    result, best = run_task(task, model, config, seeds=range(options.seeds))
    print(f"accuracy on {result.measured_on}, {result.measured} texts")
    print(f"  fine-tuned           {result.mean['accuracy'].mean:.1%}")
    print(f"  from random weights  {sum(result.from_random['accuracy']) / options.seeds:.1%}")
    for name, accuracy in result.baselines.items():       # a classifier that does not beat these is useless
        print(f"  {name:19}  {accuracy:.1%}")

    save_task(options.out, best, tokenizer, "classification", task.labels, {"from": options.model}, pairs=task.pairs)
    if options.texts:
        with workers(0) as team:
            for answer in answer_lines(load_task(options.out), options.texts, team):
                print(f"{answer.shown} ({answer.probability:.0%})  {answer.text}")


if __name__ == "__main__":
    try:
        main()
    except (mini_bert.MiniBertError, OSError) as error:       # one sentence instead of a traceback
        sys.exit(str(error))
