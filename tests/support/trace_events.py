"""Trace-event files made by hand, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import torchtrt_viz as tv
from torchtrt_viz._native import native
from torchtrt_viz.formats.producers import categories
from torchtrt_viz.trace import Trace

__all__ = ["complete", "decode", "load_events", "load_text", "summary", "warned"]


def complete(name: str, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    """A complete event of the host."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def load_text(folder: Path, text: str | bytes, **options: Any) -> Trace:
    """Load a file of this content."""
    path = folder / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    trace = tv.load(path, format="kineto", **options)
    assert isinstance(trace, Trace)
    return trace


def load_events(folder: Path, events: list[Any], **top: Any) -> Trace:
    """Load a file of these events."""
    return load_text(folder, json.dumps({**top, "traceEvents": events}))


def warned(trace: Trace) -> dict[str, int]:
    """Code of every warning and how often it happened, but for the one that made-up events all give.

    Most of them have no category and no named process: nothing says where they ran.
    """
    found = {warning.code: warning.count for warning in trace.meta["warnings"]}
    found.pop("domain_unsaid", None)
    return found


def decode(content: bytes, window: int = 1 << 20, block: int = 1 << 20) -> dict[str, Any]:
    """Decode with a window and blocks of any size, without the loader."""
    decoder = native("kineto").Decoder(
        categories=categories.CATEGORIES,
        rules=categories.NAME_RULES,
        other=categories.OTHER,
        step_kind=categories.STEP,
        kept_keys=["distributedInfo", "traceName"],
        window=window,
    )
    for at in range(0, len(content), block):
        decoder.feed(content[at : at + block])
    found: dict[str, Any] = decoder.finish()
    return found


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Everything that the decoder gives, as plain values."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(inner) for inner in value]
        return value

    out: dict[str, Any] = plain(found)
    return out
