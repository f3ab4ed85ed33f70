"""A model as a directory that other libraries open: `mini-bert export`, and `mini_bert.export`.

    onnx                     model.onnx for onnxruntime, compared with the model before it is written
    huggingface              what AutoModel and AutoTokenizer of transformers open
    sentence-transformers    what SentenceTransformer opens: the same, with the mean over the tokens and unit length

Each format gives the files of its directory and says what it found; nothing is written before all of it is there.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..core.model import MiniBERT
from ..core.storage.model_files import CONFIG, MiniLayout, layout_for, model_contents
from ..core.task_model import TaskModel
from ..errors import CheckpointError, ConfigError
from ..files import claimed, recover, write_files
from ..text.tokenizer import Tokenizer
from .onnx.model_file import compare, onnx_bytes, shown_inputs

Files = Mapping[str, bytes | Iterable[bytes | memoryview]]


class Export(NamedTuple):
    """The files, by their names inside the directory, and what there is to say about them."""

    files: Files
    found: dict[str, Any]


def _onnx(model: MiniBERT, tokenizer: Tokenizer, output: str | None) -> Export:
    content = onnx_bytes(model, output)
    worst = compare(model, content, output)
    description = model_contents(model.config, model.params, task=model.task_spec, described=model.described)[CONFIG]
    return Export({"model.onnx": content, CONFIG: description, **tokenizer.to_files()},
                  {"largest_difference": worst, **shown_inputs(content)})


def _huggingface(model: MiniBERT, tokenizer: Tokenizer, output: str | None) -> Export:
    layout = layout_for(model.config, model.task_spec, model.described)
    if isinstance(layout, MiniLayout):
        raise ConfigError("transformers has no model that computes what this one does, so there is no directory of "
                          "Hugging Face's for it; ONNX can hold it: --format onnx.")
    _require_no_output(output)
    files = model_contents(model.config, model.params, task=model.task_spec, described=model.described)
    description = json.loads(bytes(files[CONFIG]))            # type: ignore[arg-type]
    return Export({**files, **tokenizer.to_files()}, {"model_type": description["model_type"],
                                                      "architectures": description.get("architectures", [])})


def _sentence_transformers(model: MiniBERT, tokenizer: Tokenizer, output: str | None) -> Export:
    encoder = model.encoder() if isinstance(model, TaskModel) else model
    made = _huggingface(encoder, tokenizer, output)
    size, kinds = encoder.config.hidden_size, "sentence_transformers.models."
    modules = [{"idx": number, "name": str(number), "path": path, "type": kinds + kind}
               for number, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling"),
                                                      ("2_Normalize", "Normalize")))]
    described = {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": encoder.config.max_seq_length, "do_lower_case": False},
        "config_sentence_transformers.json": {"similarity_fn_name": "cosine"},
        "1_Pooling/config.json": {"word_embedding_dimension": size, "pooling_mode_cls_token": False,
                                  "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
                                  "pooling_mode_mean_sqrt_len_tokens": False},
        "2_Normalize/config.json": {}}
    return Export({**made.files, **{name: (json.dumps(content, indent=2) + "\n").encode()
                                    for name, content in described.items()}}, {**made.found, "dimensions": size})


def _require_no_output(output: str | None) -> None:
    if output is not None:
        raise ConfigError(f"The output {output[:100]} is one of ONNX; the other formats hold the whole model.")


FORMATS: dict[str, Callable[[MiniBERT, Tokenizer, str | None], Export]] = {
    "onnx": _onnx, "huggingface": _huggingface, "sentence-transformers": _sentence_transformers}


def export(model: MiniBERT, tokenizer: Tokenizer, out: str | PathLike[str], *, format: str = "onnx",
           output: str | None = None) -> dict[str, Any]:
    """Write a model and its tokenizer into a new directory for other libraries; what was found is returned.

    `output` says what a file of ONNX gives: hidden, logits, pooled or vectors; by default logits if the model has a
    head, else hidden.
    """
    if format not in FORMATS:
        raise ConfigError(f"There is no format {str(format)[:100]!r}; the formats are {', '.join(FORMATS)}.")
    model.params.require_trainable()                      # narrow weights have lost what an export should hold
    made = FORMATS[format](model, tokenizer, output)
    write_new_directory(Path(out), made.files)
    return made.found


def write_new_directory(target: Path, files: Files) -> None:
    """A directory with these files, whole or not at all; one that has files already is not changed."""
    def check(folder: Path) -> None:
        if any(folder.iterdir()):
            raise CheckpointError(f"{target} is not empty; choose another directory.")

    if target.is_dir():
        recover(target)
        check(target)
    with claimed(target, CheckpointError(f"Another process is writing {target}.")) as claim, \
            claim.filled(check) as folder:
        for parent in sorted({str(Path(name).parent) for name in files}):
            write_files(folder / parent, {Path(name).name: content for name, content in files.items()
                                          if str(Path(name).parent) == parent})
