"""The front end's files, joined into one ES module.

A notebook widget gets one module as text and an exported page holds its code inline, so the hand-written
modules in ``static/`` cannot import one another by file. `module` puts a module and all that it imports, each
in a scope of its own, into one text. There is nothing to install and nothing to build: the files are readable
as they are, and a browser loads them unjoined as well.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

__all__ = ["STATIC", "module", "style"]

STATIC = Path(__file__).resolve().parents[1] / "widgets" / "static"

_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)


@lru_cache
def module(entry: str) -> str:
    """Return ``static/<entry>.js`` and everything that it imports as the text of one ES module.

    The module's default export is that of ``entry`` (if it has one).
    """
    order: list[str] = []
    _visit(entry, order, [])
    parts = [_scoped(name) for name in order]
    if _DEFAULT.search(_source(entry)):
        parts.append(f"export default m_{entry}.default;\n")
    return "\n".join(parts)


@lru_cache
def style(*names: str) -> str:
    """Return the style sheets ``static/<name>.css`` as one text."""
    return "\n".join((STATIC / f"{name}.css").read_text(encoding="utf-8") for name in names)


def _source(name: str) -> str:
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")


def _visit(name: str, order: list[str], path: list[str]) -> None:
    if name in path:
        raise ValueError(f"static modules import one another in a circle: {' -> '.join([*path, name])}")
    if name in order:
        return
    for _, other in _IMPORT.findall(_source(name)):
        _visit(other, order, [*path, name])
    order.append(name)


def _scoped(name: str) -> str:
    source = _source(name)
    exported = [match[1] for match in _EXPORT.findall(source)]
    body = _IMPORT.sub(lambda match: f"const {{ {match[1]} }} = m_{match[2]};", source)
    body = _EXPORT.sub(lambda match: f"{match[1]} {match[2]}", body)
    if _DEFAULT.search(body):
        body = _DEFAULT.sub("const default_ = ", body)
        exported.append("default: default_")
    left = [line for line in body.splitlines() if line.startswith(("import ", "export "))]
    if left:
        raise ValueError(f"static/{name}.js: cannot join {left[0]!r}")
    return f"const m_{name} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();\n"
