"""Files that were wrapped once too often: compressed twice, or written as UTF-16 by a Windows shell."""

from __future__ import annotations

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.decompress import is_compressed
from torchtrt_viz.formats.io.source import Look, Source
from torchtrt_viz.formats.io.text_forms import decoded_head, encoding_of
from torchtrt_viz.formats.io.wrapped import Enclosed
from torchtrt_viz.formats.kineto.sniff import looks_like_trace_events
from torchtrt_viz.model.repair import Repair

__all__ = ["unwrapped"]

_MAX_LAYERS = 3


def unwrapped(source: Source, look: Look | None = None) -> tuple[Source, list[Repair]]:
    """Return what a file encloses (itself in the usual case), and a note for each wrapping.

    Text in UTF-16 or UTF-32 is unwrapped when it is trace-event JSON: the other formats' readers decode text
    themselves.

    Parameters
    ----------
    look
        How the file begins, where that is known already.

    Raises
    ------
    TraceFormatError
        For content that is compressed again and again, as no program does.
    """
    notes: list[Repair] = []
    head = source.head() if look is None else look.head
    layers = 0
    while is_compressed(head[:4]):
        layers += 1
        if layers > _MAX_LAYERS:
            raise TraceFormatError(
                "the content is compressed again and again",
                path=source.name,
                expected=f"at most {_MAX_LAYERS} layers more than one",
                hint="Unpack it yourself if you trust it",
            )
        source = source.over(Enclosed(source))
        head = source.head()
    if layers:
        notes.append(
            Repair(
                "compressed_twice",
                f"the content was compressed {layers + 1} times: all layers were unpacked",
                source.name,
                count=layers,
            )
        )
    encoding, skip = encoding_of(head)
    if encoding != "utf-8" and looks_like_trace_events(decoded_head(head).encode("utf-8", errors="replace")):
        source = source.over(Enclosed(source, encoding, skip))
        notes.append(
            Repair(
                "transcoded",
                f"the text is {encoding.upper()}: it was read as UTF-8, of which all byte offsets are",
                source.name,
            )
        )
    return source, notes
