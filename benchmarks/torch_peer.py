"""The same model in PyTorch, as fast as PyTorch makes it on a CPU; and Hugging Face's BERT of the same size.

The peer uses what makes PyTorch fast: scaled_dot_product_attention, Q, K and V in one product, the head at masked
positions only, fused AdamW, gradients set to None, and torch.compile as a second contestant.

`mini-bert bench train --against torch` starts this file in separate processes, so that the package itself
never imports PyTorch.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from mini_bert.bench.contest import BenchTask
from mini_bert.bench.contestant import make_batch, of_config, serve
from mini_bert.core.config import ModelConfig
from mini_bert.text.batches import MLMBatch


class PeerLayer(nn.Module):
    """A post-LN layer."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        H, I, eps = config.hidden_size, config.intermediate_size, config.layernorm_eps
        self.heads, self.rate, self.attention_rate = config.num_heads, config.dropout, config.attention_dropout
        self.qkv, self.out = nn.Linear(H, 3 * H, bias=False), nn.Linear(H, H, bias=False)
        self.expand, self.contract = nn.Linear(H, I), nn.Linear(I, H)
        self.ln1, self.ln2 = nn.LayerNorm(H, eps), nn.LayerNorm(H, eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, H = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, H // self.heads).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(q, k, v, dropout_p=self.attention_rate if self.training else 0.0)
        attended = self.out(context.transpose(1, 2).reshape(B, T, H))
        x = self.ln1(x + F.dropout(attended, self.rate, self.training))
        fed = self.contract(F.relu(self.expand(x)))
        return self.ln2(x + F.dropout(fed, self.rate, self.training))


class Peer(nn.Module):
    """Mini-BERT: embeddings, post-LN layers, a final LayerNorm, an untied head at masked positions."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_seq_length, config.hidden_size)
        self.layers = nn.ModuleList(PeerLayer(config) for _ in range(config.num_layers))
        self.ln = nn.LayerNorm(config.hidden_size, config.layernorm_eps)
        self.head = nn.Linear(config.hidden_size, config.vocab_size)
        self.rate = config.dropout
        for weight in (self.tokens.weight, self.positions.weight):
            nn.init.normal_(weight, std=config.init_std)

    def forward(self, ids: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        x = F.dropout(x, self.rate, self.training)
        for layer in self.layers:
            x = layer(x)
        hidden = self.ln(x.flatten(0, 1)[rows])
        return F.cross_entropy(self.head(hidden), targets)


def peer_step(config: ModelConfig, task: BenchTask, batch: MLMBatch, compiled: bool) -> Callable[[], float]:
    torch.set_num_threads(task.threads)
    torch.manual_seed(task.seed)
    model = Peer(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01, fused=True)
    loss_of = torch.compile(model) if compiled else model
    chosen = batch.mask_positions.reshape(-1)
    ids, rows = torch.from_numpy(batch.input_ids), torch.from_numpy(chosen.nonzero()[0])
    targets = torch.from_numpy(batch.target_ids.reshape(-1)[chosen])

    def step() -> float:                              # the whole batch at once, which suits PyTorch best
        loss = loss_of(ids, rows, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return float(loss.item())

    return step


def transformers_step(config: ModelConfig, task: BenchTask, batch: MLMBatch) -> Callable[[], float]:
    """BertForMaskedLM of the same sizes, as its users train it: labels of -100 where nothing is masked."""
    from transformers import BertConfig, BertForMaskedLM

    torch.set_num_threads(task.threads)
    torch.manual_seed(task.seed)
    model = BertForMaskedLM(BertConfig(
        vocab_size=config.vocab_size, hidden_size=config.hidden_size, num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads, intermediate_size=config.intermediate_size, hidden_act="relu",
        max_position_embeddings=config.max_seq_length, hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.attention_dropout)).train()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01, fused=True)
    ids = torch.from_numpy(batch.input_ids)
    labels = torch.where(torch.from_numpy(batch.mask_positions), torch.from_numpy(batch.target_ids), -100)
    mask = torch.from_numpy(batch.attention_mask).long()

    def step() -> float:
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return float(loss.item())

    return step


MAKERS = {
    "torch": of_config(lambda config, task: peer_step(config, task, make_batch(config, task), compiled=False)),
    "torch.compile": of_config(lambda config, task: peer_step(config, task, make_batch(config, task), compiled=True)),
    "transformers": of_config(lambda config, task: transformers_step(config, task, make_batch(config, task)))}

if __name__ == "__main__":
    serve(MAKERS)
