"""Every objective, every kind of model: what several processes learn, measure and keep is what one does."""

import numpy as np
import pytest
from process_threads import together

from mini_bert import MiniBERT
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import load_run_config, make_objective
from mini_bert.training.loop import Listener
from mini_bert.training.runs.objective_state import packed
from mini_bert.training.runs.optimiser_state import whole_state
from mini_bert.training.trainer import Trainer

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away"]
SMALL = ["model.hidden_size=16", "model.intermediate_size=32", "model.num_heads=2", "model.vocab_size=60",
         "model.max_seq_length=16", "model.num_layers=2", "training.steps=4", "training.batch_size=8",
         "training.micro_batch_size=2", "training.threads=1", "training.max_seq_length=16", "training.eval_every=2",
         "training.eval_sequences=16", "training.warmup_steps=1", "training.log_every=2"]
BY_THE_CLOCK = {"seconds", "tokens_per_second", "loading_share", "rss_mb", "peak_rss_mb"}
FACTORISED = "model.embedding_size=8"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("corpus")
    text = "\n\n".join("\n".join(" ".join(rng.choice(WORDS, rng.integers(3, 6))) + "." for _ in range(6))
                       for _ in range(60))
    (folder / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([text]), 60))
    prepare([str(folder / "text.txt")], tokenizer, folder / "made", heldout=0.1, workers=1)
    return Corpus(folder / "made")


class Heard(Listener):
    def __init__(self):
        self.records = []

    def logged(self, record):
        self.records.append({key: value for key, value in record.items() if key not in BY_THE_CLOCK})


@pytest.mark.parametrize(("preset", "changes"), [
    ("mini-gpt", []), ("mini-xlnet", []), ("mini-xl", []), ("mini-electra", [FACTORISED]), ("mini-deberta", []),
    ("mini-albert", [FACTORISED]), ("mini-modern", []), ("mini", ["training.masking_weights=adaptive(every=2)"]),
    ("mini", ["training.bucket=true"]), ("mini", ["training.objective=masked + 0.5 contrastive"]),
    ("mini", ["training.batch_size=4 -> 9 over 0.9", "training.freeze=embeddings layer_0"])], ids=str)
def test_every_objective_learns_and_measures_the_same(corpus, preset, changes):
    model, training = load_run_config(preset, SMALL + changes)
    training = training.resolved(model)

    def learned(processes=None):
        network, heard = MiniBERT(model, seed=0), Heard()
        objective = make_objective(training, network)
        trainer = Trainer(network, objective.batches(corpus, training), training, listener=heard,
                          heldout=objective.heldout(corpus, training), objective=objective, processes=processes)
        trainer.train()
        values, arrays = packed(objective, network)
        state = {name: array.tobytes() for name, array in whole_state(trainer.optimiser).items()}
        return (objective.params.flat.tobytes(), heard.records, str(values),
                {name: array.tobytes() for name, array in arrays.items()}), state

    alone, state = learned()
    found = together(3, learned)
    assert [one for one, _ in found] == [alone] * 3
    assert found[0][1] == state
