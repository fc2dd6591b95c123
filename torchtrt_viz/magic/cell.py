"""A cell under ``%%trtprofile`` as the same cell inside a capture.

Two steps, so that the kernel itself runs the cell: ``await``, Out, error status, breakpoints and line numbers
are its own. An input transformer replaces the first line, and that line only, by a call that marks the cell;
an AST transformer turns the marked body into the body of a ``with`` statement. The value of the last
expression is carried out of the block, so that it is displayed after the capture has ended: showing a tensor
runs operators too.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from torchtrt_viz.magic.options import MAGIC, wants_help

__all__ = ["MARKER", "WrapMarkedCell", "install", "mark", "uninstall"]

MARKER = "__trtprofile_cell__"
_HOME = "torchtrt_viz.magic.cell_capture"
_FIRST_LINE = re.compile(rf"%%{MAGIC}(?:[ \t]+(?P<line>.*?))?\s*$", re.DOTALL)
_CELL_MAGIC = re.compile(r"%%(?!%)\S")
_HELP = re.compile(r"%%\w+\?")


def mark(lines: list[str]) -> list[str]:
    """Mark a cell that begins with ``%%trtprofile``; other cells are returned as they are.

    Pure, and called several times per cell. The number of lines stays, unless another cell magic follows:
    its body becomes an argument, as IPython does it.
    """
    found = _FIRST_LINE.match(lines[0]) if lines else None
    if found is None:
        return lines
    line = found["line"] or ""
    if wants_help(line):
        return [f"get_ipython().run_line_magic({MAGIC!r}, '-h')\n"]
    marker = f"{MARKER}({line!r})"
    body = lines[1:]
    at = next((i for i, text in enumerate(body) if text.strip()), len(body))
    if at < len(body) and _CELL_MAGIC.match(body[at]) and not _HELP.match(body[at]):
        inner = _FIRST_LINE.match(body[at])
        if inner is not None:
            return [f"{MARKER}({line!r}, nested=True)\n"]
        name, _, rest = body[at][2:].rstrip().partition(" ")
        text = "".join(body[at + 1 :])
        return [f"{marker}; get_ipython().run_cell_magic({name!r}, {rest!r}, {text!r})\n"]
    return [f"{marker}\n", *body[:at], *_without_indent(body[at:])]


# Terminals ask whether a cell is complete: they have to see its first line as it was typed.
mark.has_side_effects = True  # type: ignore[attr-defined]


def _without_indent(lines: list[str]) -> list[str]:
    """Remove a common indent, as IPython does for cells that are indented from their first line on."""
    from IPython.core.inputtransformer2 import leading_indent

    out: list[str] = leading_indent(lines)
    return out


class WrapMarkedCell(ast.NodeTransformer):
    """Put the statements of a marked cell into a capture."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """Return the module, wrapped when its first statement is the marker."""
        marker = _marker(node)
        if marker is None:
            return node
        body = node.body[1:]
        future, body = _cut_future(body)
        body, shown = self._carry_out(body)
        call = _call("cell", [*marker.args], marker.keywords)
        block = ast.With(items=[ast.withitem(context_expr=call)], body=body or [ast.Pass()])
        # A frame inside the block reports the line of its own statement; the block itself has to begin where
        # the first statement does, or tracebacks would lead to the magic's line.
        origin = body[0] if body else marker
        for part in (block, *ast.walk(block.items[0])):
            if "lineno" in part._attributes:
                ast.copy_location(part, origin)
        for part in shown:
            ast.copy_location(part, body[-1] if body else marker)
        node.body = [*future, block, *shown]
        return ast.fix_missing_locations(node)

    def _carry_out(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Return the statements of the block, and what has to stand behind it to be displayed."""
        shows = self._shell.ast_node_interactivity
        if not body or shows == "none":
            return body, []
        last = body[-1]
        if shows == "all":
            return [_displayed(statement) for statement in body], []
        if isinstance(last, ast.Expr):
            keep = ast.copy_location(ast.Expr(_call("keep", [last.value])), last)
            return [*body[:-1], keep], [ast.Expr(_call("take", []))]
        target = _assigned_name(last) if shows == "last_expr_or_assign" else None
        return body, [] if target is None else [ast.Expr(ast.Name(target, ast.Load()))]


def _marker(node: ast.Module) -> ast.Call | None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call):
        function = first.value.func
        if isinstance(function, ast.Name) and function.id == MARKER:
            return first.value
    return None


def _cut_future(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return the imports from ``__future__``, which have to stand first, and the rest."""

    def future(at: int) -> bool:
        statement = body[at] if at < len(body) else None
        return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"

    docstring = bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    end = 1 if docstring and future(1) else 0
    while future(end):
        end += 1
    return body[:end], body[end:]


def _call(name: str, args: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.Call:
    """Return a call of a function of `session`, which the cell's namespace need not know."""
    home = ast.Call(
        ast.Name("__import__", ast.Load()),
        [ast.Constant(_HOME)],
        [ast.keyword("fromlist", ast.List([ast.Constant(name)], ast.Load()))],
    )
    return ast.Call(ast.Attribute(home, name, ast.Load()), args, keywords or [])


def _displayed(statement: ast.stmt) -> ast.stmt:
    if not isinstance(statement, ast.Expr):
        return statement
    return ast.copy_location(ast.Expr(_call("display", [statement.value])), statement)


def _assigned_name(statement: ast.stmt) -> str | None:
    """Return the name that an assignment binds, where IPython shows assignments."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def install(shell: Any) -> None:
    """Add both transformers."""
    uninstall(shell)
    shell.input_transformers_cleanup.append(mark)
    shell.ast_transformers.append(WrapMarkedCell(shell))


def uninstall(shell: Any) -> None:
    """Remove both transformers."""
    shell.input_transformers_cleanup[:] = [t for t in shell.input_transformers_cleanup if t is not mark]
    shell.ast_transformers[:] = [t for t in shell.ast_transformers if not isinstance(t, WrapMarkedCell)]
