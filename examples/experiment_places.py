"""An experiment, from the question to the answer: what does a BERT gain from knowing where words are?

    python examples/experiment_places.py pydocs --out places.lab

Question     Without positions a BERT sees a text as a bag of words. How much of what it learns needs the places of
             words, and how much of that is only how far away they are?
Runs         none       no positions at all
             distance   attention falls off with distance (ALiBi): near or far, but not left or right
             place      a learned vector for each place, and heads that begin by looking at neighbours (`init: local`)
             control    the same vectors without that start: is it the places, or how the weights begin?
Same for all model size, text, tokens, batches, learning rate; several seeds.
Measure      the loss at hidden words of text that was held out, beside that of guessing by frequency (unigram) and by
             the word before (bigram). A bag of words cannot know which word is before.
Prediction   written down before the first run: `none` stays above the bigram loss; `distance` is better than `none` by
             more than the interval over seeds; `place` is best. The script says which of these came true.

To ask a question of your own, change RUNS and PREDICTIONS. A run that is finished is not repeated.
"""

import argparse
import sys
from pathlib import Path

import mini_bert
from mini_bert.evaluation.masked_lm import Frequencies, evaluate_corpus
from mini_bert.evaluation.statistics import Interval, over_seeds
from mini_bert.lab.experiment import Experiment
from mini_bert.lab.runs import perform, run_directory
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.sources import ReadingReport, find_sources, paragraphs
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.training.loop import Listener
from mini_bert.training.progress import heard

RUNS = {"none": ["model.position_embeddings=none", "training.init=normal"],
        "distance": ["model.position_embeddings=none", "model.score_terms=alibi", "training.init=normal"],
        "place": ["training.init=local"],
        "control": ["training.init=normal"]}

Losses = dict[str, Interval]
PREDICTIONS = {
    "a bag of words is no better than bigrams": lambda loss, bigram: loss["none"].mean > bigram,
    "distance helps by more than the intervals": lambda loss, bigram: apart(loss["distance"], loss["none"]),
    "places are best": lambda loss, bigram: loss["place"].mean == min(one.mean for one in loss.values())}


def apart(lower: Interval, higher: Interval) -> bool:
    """Is the one below the other, and do their intervals not touch? One seed has none, and proves nothing."""
    return lower.high is not None and higher.low is not None and lower.high < higher.low


def prepared(text: list[str], corpus: Path) -> Path:
    """The text as a corpus with a vocabulary of its own, made once."""
    if not corpus.exists():
        found = paragraphs(find_sources(text), ReadingReport())
        words = count_words(paragraph for paragraph in found if paragraph is not None)
        tokenizer = mini_bert.WordPieceTokenizer(learn_vocabulary(words, 4096))
        prepare(text, tokenizer, corpus, heldout=0.03, longest_document=4096)
    return corpus


def announce(name: str, seed: int) -> Listener:
    print(f"{name}, seed {seed}", file=sys.stderr)
    return heard(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", nargs="+", help="Files or folders of text, or pydocs.")
    parser.add_argument("--out", type=Path, required=True, help="A directory for the corpus and the runs.")
    parser.add_argument("--config", default="small", help="The preset that all runs share.")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3, help="Of one seed nothing can be concluded.")
    options = parser.parse_args()

    corpus = mini_bert.Corpus(prepared(options.text, options.out / "corpus"))
    plan = Experiment.from_dict({
        "config": options.config, "seeds": list(range(options.seeds)), "steps": options.steps, "runs": RUNS,
        "set": [f"model.vocab_size={len(corpus.tokenizer)}", f"training.eval_every={max(1, options.steps // 5)}"]})
    perform(plan, corpus.directory, options.out, announce)

    frequencies, loss = Frequencies(corpus, len(corpus.tokenizer)), Losses()
    length = plan.shared_settings()[0].max_seq_length
    print(f"{'':10}held-out loss, {options.seeds} seeds, {options.steps:,} steps")
    for name in RUNS:                     # all by one protocol, which says nothing of how a model was trained
        reports = [evaluate_corpus(mini_bert.load(run_directory(options.out, name, seed)), corpus,
                                   length=length, frequencies=frequencies) for seed in plan.seeds]
        loss[name] = over_seeds([report.loss for report in reports])
        print(f"{name:10}{loss[name].shown(3, 1)}")
    levels = reports[0].baselines
    print(f"{'bigram':10}{levels['bigram']:.3f}\n{'unigram':10}{levels['unigram']:.3f}")
    for prediction, holds in PREDICTIONS.items():
        print(f"{'true ' if holds(loss, levels['bigram']) else 'FALSE'}  {prediction}")


if __name__ == "__main__":
    try:
        main()
    except (mini_bert.MiniBertError, OSError) as error:       # one sentence instead of a traceback
        sys.exit(str(error))
