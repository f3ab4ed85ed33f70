"""Write the reference of tests/interop/test_huggingface.py: a tiny BERT made by transformers.

Run it where PyTorch and transformers are installed (`make parity` makes such an environment):

    .venv-parity/bin/python tests/reference/make_bert.py

It writes bert/ (the model as transformers saves it, float64) and bert/expected.safetensors (a padded
batch, its hidden states, pooled output, logits and loss, and the gradient of every parameter).
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

HERE = Path(__file__).parent


def main() -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=12, type_vocab_size=2, initializer_range=0.3, attn_implementation="eager")
    model = transformers.BertForMaskedLM(config).double().eval()
    for name, parameter in model.named_parameters():       # biases and LayerNorms off their zeros and ones
        if "bias" in name or "LayerNorm" in name:
            parameter.data += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(HERE / "bert")

    ids = torch.randint(5, 24, (3, 9))
    mask = torch.arange(9) < torch.tensor([9, 6, 2])[:, None]
    types = torch.randint(0, 2, (3, 9))
    labels = torch.where((torch.rand(3, 9) < 0.4) & mask, ids, torch.tensor(-100))
    output = model(ids, mask.long(), types, labels=labels, output_hidden_states=True)
    output.loss.backward()

    arrays = {"input_ids": ids, "attention_mask": mask.long(), "token_types": types, "labels": labels,
              "logits": output.logits, "loss": output.loss[None]}
    arrays |= {f"hidden_{i}": hidden for i, hidden in enumerate(output.hidden_states)}
    arrays |= {f"gradient of {name}": parameter.grad for name, parameter in model.named_parameters()}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__,
                "numpy": np.__version__, "python": sys.version.split()[0]}
    save_file({name: value.detach().numpy().copy() for name, value in arrays.items()},
              HERE / "bert" / "expected.safetensors", metadata=versions)
    (HERE / "bert" / "generation_config.json").unlink(missing_ok=True)
    print(json.dumps(versions, indent=2))


if __name__ == "__main__":
    main()
