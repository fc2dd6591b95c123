"""A small decoder-only transformer with a cache of keys and values; its weights are random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

__all__ = ["KVCache", "ModelSize", "TinyTransformer"]


@dataclass(frozen=True)
class ModelSize:
    """Dimensions of the model.

    Attributes
    ----------
    vocabulary, width, heads, layers
        As usual.
    longest
        Tokens of prompt and answer together.
    slots
        Requests that one decode worker holds at a time.
    """

    vocabulary: int = 256
    width: int = 64
    heads: int = 4
    layers: int = 2
    longest: int = 128
    slots: int = 8

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.width // self.heads


class KVCache:
    """Keys and values of the requests that a decode worker holds: one slot each."""

    def __init__(self, size: ModelSize) -> None:
        shape = (size.layers, 2, size.slots, size.heads, size.longest, size.head_width)
        self.data = torch.zeros(shape)
        self.lengths = torch.zeros(size.slots, dtype=torch.long)

    def put(self, slot: int, kv: torch.Tensor) -> None:
        """Fill a slot with what a prefill worker computed, (layers, 2, heads, tokens, head width)."""
        tokens = kv.shape[3]
        self.data[:, :, slot, :, :tokens] = kv
        self.lengths[slot] = tokens


class _Block(nn.Module):  # type: ignore[misc]
    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        self.before_attention = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.out = nn.Linear(size.width, size.width)
        self.before_mlp = nn.LayerNorm(size.width)
        self.mlp = nn.Sequential(
            nn.Linear(size.width, 4 * size.width), nn.GELU(), nn.Linear(4 * size.width, size.width)
        )

    def heads(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Split into queries, keys and values of shape (batch, heads, tokens, head width)."""
        batch, tokens, _ = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, tokens, 3, self.size.heads, self.size.head_width)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return q, k, v

    def rest(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """Add attention's result and the MLP's."""
        batch, _, tokens, _ = attended.shape
        x = x + self.out(attended.transpose(1, 2).reshape(batch, tokens, self.size.width))
        return x + self.mlp(self.before_mlp(x))


class TinyTransformer(nn.Module):  # type: ignore[misc]
    """The model; the same seed gives the same weights on every worker."""

    def __init__(self, size: ModelSize, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.size = size
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.longest, size.width)
        self.blocks = nn.ModuleList(_Block(size) for _ in range(size.layers))
        self.last = nn.LayerNorm(size.width)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def prefill(self, prompt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Run a prompt of shape (tokens,).

        Returns
        -------
        (logits, kv)
            Logits of the next token (vocabulary,), keys and values (layers, 2, heads, tokens, head width).
        """
        x = (self.tokens(prompt) + self.positions(torch.arange(len(prompt))))[None]
        kept = []
        for block in self.blocks:
            q, k, v = block.heads(x)
            kept.append(torch.stack((k[0], v[0])))
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = block.rest(x, attended)
        return self._logits(x[:, -1])[0], torch.stack(kept)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def decode(self, tokens: torch.Tensor, slots: torch.Tensor, cache: KVCache) -> torch.Tensor:
        """Run one token of each request in the given slots; return logits (requests, vocabulary)."""
        at = cache.lengths[slots]
        x = (self.tokens(tokens) + self.positions(at))[:, None]
        seen = torch.arange(self.size.longest)[None] <= at[:, None]
        for number, block in enumerate(self.blocks):
            q, k, v = block.heads(x)
            cache.data[number, 0, slots, :, at] = k[:, :, 0]
            cache.data[number, 1, slots, :, at] = v[:, :, 0]
            keys, values = cache.data[number, 0, slots], cache.data[number, 1, slots]
            attended = functional.scaled_dot_product_attention(
                q, keys, values, attn_mask=seen[:, None, None, :]
            )
            x = block.rest(x, attended)
        cache.lengths[slots] += 1
        return self._logits(x[:, -1])

    def _logits(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(self.last(x), self.tokens.weight)
