"""Names that people can read of engines, delegates and layers, whose own names are keys.

A key keeps its place in every table; these words stand beside it, or over it where there is little room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["engine_names", "layer_name", "shortened"]

_HASH = re.compile(r"^[0-9a-f]{12,64}[-_.]")
_TORCHTRT = re.compile(r"\[([^\[\]]+)\]-\[[^\[\]]+\]-\[(/[^\[\]]*)\]")
_DISCRIMINATOR = re.compile(r"\[layer_0*(\d+)_[^\[\]]*\]\s*$")
_MOST_PARTS = 3


def shortened(text: str, limit: int = 60) -> str:
    """Shorten a text in its middle: names of kernels and modules differ at both ends."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def layer_name(name: str, limit: int = 60) -> str:
    """Return the module path of a layer that Torch-TensorRT or this package named; other names as they are.

    ``[LINEAR]-[aten_ops.linear.default]-[/mlp/1/linear]`` becomes ``mlp/1/linear``. Of layers that were fused
    the first is named, and how many more there are. A number that tells layers of one path apart is kept.
    """
    parts = [path.strip("/") or kind.lower() for kind, path in _TORCHTRT.findall(name)]
    if not parts:
        return shortened(name, limit)
    apart = _DISCRIMINATOR.search(name)
    end = f" #{apart[1]}" if apart else ""
    if len(parts) > 1:
        end = f" + {len(parts) - 1} fused{end}"
    return shortened(parts[0], max(12, limit - len(end))) + end


def engine_names(engines: Iterable[Any], modules: pd.DataFrame | None = None) -> dict[str, str]:
    """Return a readable name for each engine or delegate: without its hash, with what it covers.

    Parameters
    ----------
    engines
        Their keys (``run_id``).
    modules
        A table with the columns ``engine`` and ``module``, such as that of the layers: the outermost modules
        of an engine are named after it.
    """
    keys = list(dict.fromkeys(engine for engine in engines if isinstance(engine, str)))
    covered = _covered(modules) if modules is not None else {}
    bare = {key: _HASH.sub("", key) for key in keys}
    often = Counter(bare.values())
    out = {}
    for key in keys:
        words = bare[key] if often[bare[key]] == 1 else f"{bare[key]} {key[:6]}"
        inside = covered.get(key, [])
        if inside and bare[key] != key:
            more = f", and {len(inside) - _MOST_PARTS} more" if len(inside) > _MOST_PARTS else ""
            words += f" ({', '.join(inside[:_MOST_PARTS])}{more})"
        out[key] = words
    return out


def _covered(modules: pd.DataFrame) -> dict[str, list[str]]:
    """Return the outermost modules of each engine's layers, in the engine's order."""
    known = modules[modules["engine"].notna() & modules["module"].notna()]
    if "position" in known:
        known = known.sort_values(["engine", "position"], kind="stable")
    found: dict[str, list[str]] = {}
    for engine, text in zip(known["engine"], known["module"], strict=True):
        held = found.setdefault(str(engine), [])
        for part in str(text).split(","):
            name = part.strip().partition(".")[0]
            if name and name != "(root)" and name not in held:
                held.append(name)
    return found
