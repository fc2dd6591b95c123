"""Names of kernels, layers and engines short enough for a label; hover labels and tables have them whole."""

from __future__ import annotations

import re
import zlib

from torchtrt_viz.charts.written import one_line

__all__ = ["engine_label", "format_label", "kernel_label", "layer_label", "node_label", "shade"]

_REFORMAT = re.compile(
    r"Reformatting CopyNode for (Input|Output|Network (?:Input|Output)) Tensor (\d+) (?:to|from) (.+)$"
)
_TORCHTRT = re.compile(r"\[(\w+)\]-\[[^\[\]]*\]-\[/?([^\[\]]+)\]")
"""Type, operator and module path, as Torch-TensorRT names layers."""
_APART = re.compile(r"\[layer_0*(\d+)_[^\[\]]*\]\s*$")
"""What tells layers of one path apart."""
_NUMBERS = {"two": 2, "four": 4, "eight": 8, "sixteen": 16, "thirty-two": 32}
_WIDE = re.compile(r"\b(two|four|eight|sixteen|thirty-two) wide channel", re.I)
_PREFIX = re.compile(r"^[0-9a-f]{12,}[-_](?=\w)")
_HASH = re.compile(r"(?<![0-9a-fA-F])([0-9a-f]{6})[0-9a-f]{6,}(?![0-9a-fA-F])")


def kernel_label(name: object) -> str:
    """Return a kernel's name without its arguments, template arguments and return type."""
    text = one_line(name)
    if "(" not in text and "<" not in text:
        return text
    out: list[str] = []
    depth = 0
    for at, character in enumerate(text):
        if character == "<":
            depth += 1
            if depth == 1:
                out.append("<…>")
        elif character == ">" and depth:
            depth -= 1
        elif depth == 0:
            if character == "(" and not text.startswith("(anonymous", at):
                break
            out.append(character)
    label = "".join(out).replace("(anonymous namespace)::", "").removeprefix("void ").strip()
    label = label.removeprefix("at::native::")
    return label or text


def format_label(text: str) -> str:
    """Return a tensor's layout in a word: linear, channel last, or how many channels stand together."""
    wide = _WIDE.search(text)
    if wide:
        return f"{_NUMBERS[wide[1].lower()]}-wide channels"
    major = re.search(r"channel major", text, re.I)
    if major:
        every = re.search(r"channel % (\d+)", text)
        return f"channel last %{every[1]}" if every else "channel last"
    return "linear" if re.search(r"row major|linear", text, re.I) else ""


def layer_label(name: object, module: object = None) -> str:
    """Return what a layer is called: its name, with the module path before it where the name lacks that."""
    text = one_line(name).lstrip("/")
    found = _REFORMAT.match(text)
    if found:
        other = found[3].lstrip("/")
        return f"reformat {found[2]} → {other}" if "Input" in found[1] else f"{other} → reformat {found[2]}"
    parts = _TORCHTRT.match(text)
    if parts:
        apart = _APART.search(text)
        return f"{parts[2]}{f' #{apart[1]}' if apart else ''} ({parts[1]})"
    path = one_line(module) if isinstance(module, str) and module else ""
    if path and path.replace(".", "/") not in text and path not in text:
        return f"{path}: {text}"
    return text


def node_label(name: object) -> str:
    """Return a layer's name without the folders that the names of its neighbours begin with as well."""
    parts = layer_label(name).split(" + ")
    return " + ".join("/".join(part.split("/")[-2:]) for part in parts)


def engine_label(name: object) -> str:
    """Return an engine's or delegate's name without the hash before it, or with only its beginning."""
    return _HASH.sub(r"\1…", _PREFIX.sub("", one_line(name)))


def shade(name: object) -> int:
    """Return the colour number of a name, the same in every picture."""
    return zlib.crc32(str(name).encode("utf-8", "replace")) % 8
