"""What a search calls a track: its label, process, thread and stream, as texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchtrt_viz.model.places import process_label

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["track_texts"]


def track_texts(tracks: pd.DataFrame) -> dict[str, list[str | None]]:
    """Return what a search may ask of a track in words, one text per track, by the field's name."""
    threads = [str(value) if isinstance(value, (str, int)) else None for value in tracks["thread"]]
    streams = [kind == "stream" for kind in tracks["type"]]
    names = tracks["process_name"] if "process_name" in tracks else [None] * len(tracks)
    return {
        "track": [str(label) for label in tracks["label"]],
        "process": [process_label(*each) for each in zip(tracks["process"], names, strict=True)],
        "thread": [None if of else text for text, of in zip(threads, streams, strict=True)],
        "stream": [_stream(text) if of else None for text, of in zip(threads, streams, strict=True)],
    }


def _stream(text: str | None) -> str | None:
    """Return the number of a stream that is called "stream 7" in its file."""
    return text if text is None else re.sub(r"(?i)^stream\s+(?=\S+$)", "", text)
