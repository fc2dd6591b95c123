"""Reads the columns of a message, from the description of the format and without the code that packs them."""

from __future__ import annotations

import numpy as np


def unpack(frame, buffer):
    """Return the columns by name, as the front end gets them."""
    out = {}
    for column in frame["columns"]:
        offset, length = column["offset"], column["length"]
        assert offset % 8 == 0
        if "encoding" not in column:
            values = np.frombuffer(buffer, np.dtype(column["dtype"]), length, offset)
        else:
            planes = buffer[offset]
            packed = np.frombuffer(buffer, np.uint8, planes * length, offset + 1)
            folded = sum(packed.reshape(planes, length)[p].astype(np.int64) << (8 * p) for p in range(planes))
            values = (folded >> 1) ^ -(folded & 1)
            if column["encoding"] == "running":
                values = np.cumsum(values)
        out[column["name"]] = values
    return out
