"""The front end's files, joined into one ES module.

A notebook widget is given one module as text, and an exported page holds its code inline, under a policy that
lets one script run and nothing be loaded: there the hand-written modules in ``static/`` cannot import one
another by file. `module` puts a module and all that it imports into one text, each as a function that is
called at once and returns what it exports. There is nothing to install and nothing to build: the files are
readable as they are, and a browser loads them unjoined as well.

JavaScript is not parsed for that. Only these forms are known, each on a line of its own that begins with it::

    import { name, other } from "./module.js";
    export function name    export async function name    export class name    export const name
    export default

A line of code with the word ``import`` or ``export`` in any other place is refused (comments on lines of
their own may have them), and so is a name that the other module does not export: what is not understood is
an error and never left out. Nothing is exported that can change later, so that handing over values is as good
as the live bindings of real modules. Modules cannot import one another in a circle, nor wait at their top
level.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["STATIC", "module", "style"]

STATIC = Path(__file__).resolve().parents[1] / "widgets" / "static"

_WORD = re.compile(r"\b(?:import|export)\b")
_IMPORT = re.compile(r'import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";')
_EXPORT = re.compile(r"export (?=(?:(?:async )?function|class|const) (\w+)\b)")
_DEFAULT = re.compile(r"export default ")


@dataclass(frozen=True)
class _Module:
    """One file: ``imports`` are (module, names), ``code`` has the lines of both kinds replaced."""

    name: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    exports: tuple[str, ...]
    default: bool
    code: str

    def scoped(self) -> str:
        """Return it as a constant that holds what it exports."""
        exports = [*self.exports, "default: default_"] if self.default else self.exports
        return f"const m_{self.name} = (() => {{\n{self.code}\nreturn {{ {', '.join(exports)} }};\n}})();\n"


@lru_cache
def module(entry: str) -> str:
    """Return ``static/<entry>.js`` and everything that it imports as the text of one ES module.

    The module's default export is that of ``entry`` (if it has one).

    Raises
    ------
    ValueError
        For a form of import or export that is not known, a name that is not exported, and for circles.
    """
    joined: dict[str, _Module] = {}
    _visit(entry, joined, [])
    parts = [one.scoped() for one in joined.values()]
    if joined[entry].default:
        parts.append(f"export default m_{entry}.default;\n")
    return "\n".join(parts)


@lru_cache
def style(*names: str) -> str:
    """Return the style sheets ``static/<name>.css`` as one text."""
    return "\n".join((STATIC / f"{name}.css").read_text(encoding="utf-8") for name in names)


def _visit(name: str, joined: dict[str, _Module], path: list[str]) -> None:
    """Add a module behind all that it imports."""
    if name in path:
        raise ValueError(f"static modules import one another in a circle: {' -> '.join([*path, name])}")
    if name in joined:
        return
    one = _read(name)
    for other, names in one.imports:
        _visit(other, joined, [*path, name])
        unknown = sorted(set(names) - set(joined[other].exports))
        if unknown:
            raise ValueError(
                f"static/{name}.js imports {unknown[0]!r}, which static/{other}.js does not export"
            )
    joined[name] = one


def _read(name: str) -> _Module:
    imports: list[tuple[str, tuple[str, ...]]] = []
    exports: list[str] = []
    default = False
    lines: list[str] = []
    inside = False
    for number, line in enumerate((STATIC / f"{name}.js").read_text(encoding="utf-8").splitlines(), 1):
        code, inside = _without_comment(line, inside)
        words = len(_WORD.findall(code))
        if words == 0:
            lines.append(line)
        elif found := _IMPORT.fullmatch(line):
            imports.append((found[2], tuple(found[1].split(", "))))
            lines.append(f"const {{ {found[1]} }} = m_{found[2]};")
        elif words == 1 and (found := _EXPORT.match(line)):
            exports.append(found[1])
            lines.append(line[found.end() :])
        elif words == 1 and not default and (found := _DEFAULT.match(line)):
            default = True
            lines.append(f"const default_ = {line[found.end() :]}")
        else:
            raise ValueError(f"static/{name}.js, line {number}: cannot join {line!r}")
    return _Module(name, tuple(imports), tuple(exports), default, "\n".join(lines))


def _without_comment(line: str, inside: bool) -> tuple[str, bool]:
    """Return a line without the comment that it begins with, and whether the next line is inside of it."""
    text = line.lstrip()
    if inside or text.startswith("/*"):
        _, end, rest = text.partition("*/")
        return rest, not end
    return ("" if text.startswith("//") else line), False
