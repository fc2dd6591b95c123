"""The network of the demo. A module of its own: it can only be defined where torch is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["DemoNet"]


class Attention(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Self-attention of a few heads over a short sequence, with its residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Attend; ``x`` is [batch, tokens, width]."""
        batch, tokens, width = x.shape
        parts = self.query_key_value(self.norm(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5, dim=-1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, tokens, width)
        return x + self.project(mixed)


class Gate(nn.Module):  # type: ignore[misc]  # torch is not followed
    """How much each token counts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Weigh the tokens of ``x``, [batch, tokens, width]."""
        return x * torch.sigmoid(self.score(x))


class Tail(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Classes with their scores, best first, and the probability that they add up to."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.classify = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return running sums of the five best probabilities, and their classes."""
        best, which = torch.topk(torch.softmax(self.classify(x), dim=-1), 5)
        return torch.cumsum(best, dim=-1), which


class DemoNet(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Convolution stem, attention, gate, feed-forward, tail: images [batch, 3, 64, 64] to five classes."""

    def __init__(self, width: int = 64, heads: int = 4, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.attention = Attention(width, heads)
        self.gate = Gate(width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.tail = Tail(width, classes)

    def forward(self, images: Tensor) -> Any:
        """Classify images."""
        tokens = self.stem(images).flatten(2).transpose(1, 2)
        tokens = self.gate(self.attention(tokens))
        tokens = tokens + self.feed_forward(tokens)
        return self.tail(tokens.mean(dim=1))
