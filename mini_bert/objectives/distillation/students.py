"""A student that begins as some layers of its teacher, as DistilBERT does: it keeps the embeddings and the heads."""

from collections.abc import Sequence
from dataclasses import replace

from ...core.model import MiniBERT
from ...errors import ConfigError


def student_of(teacher: MiniBERT, layers: Sequence[int]) -> MiniBERT:
    """A model of the teacher's width that runs these of its layers, counted from 0, with their weights.

        student_of(load("DIR"), [0, 2, 4]).save("student")
    """
    teacher.params.require_trainable()
    count = teacher.config.num_layers
    if not layers or any(not 0 <= layer < count for layer in layers):
        raise ConfigError(f"A student takes some of the teacher's layers, 0 to {count - 1}, not {list(layers)}.")
    student = MiniBERT(replace(teacher.config, num_layers=len(layers)), dtype=teacher.dtype, seed=None)
    student.vocab_digest = teacher.vocab_digest
    for ours, chosen in zip(student.modules.stack.layers, layers, strict=True):
        for mine, theirs in zip(ours.layout(), teacher.modules.stack.layers[chosen].layout(), strict=True):
            student.params[mine.name][...] = teacher.params[theirs.name]
    for name, spec in student.params.specs.items():
        if spec.layer is None:
            student.params[name][...] = teacher.params[name]
    return student
