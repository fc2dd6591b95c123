"""The ordinary magics: the line form, help, and cells that other code runs through ``run_cell_magic``."""

from __future__ import annotations

import ast
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from torchtrt_viz.magic.cell_capture import CaptureSession
from torchtrt_viz.magic.options import MAGIC, help_text, parse, wants_help

__all__ = ["ProfileMagics", "install", "uninstall"]


@magics_class
class ProfileMagics(Magics):  # type: ignore[misc]
    """``%trtprofile`` and ``%%trtprofile``."""

    @no_var_expand  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def trtprofile(self, line: str, cell: str | None = None) -> Any:
        """Show the manual, run one statement, or hand a cell over to the cell form."""
        __tracebackhide__ = True
        if wants_help(line):
            print(help_text())
            return None
        if cell is not None:
            return self._run_cell(line, cell)
        return self._run_statement(line)

    def _run_cell(self, line: str, cell: str) -> None:
        """Run a cell that did not come through the input transformer, as a cell of its own.

        An exception of the inner cell has already been shown when the cell ends; it is raised again without a
        second traceback, so that the outer cell fails too.
        """
        __tracebackhide__ = True
        result = self.shell.run_cell(f"%%{MAGIC} {line}\n{cell}")
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            error._render_traceback_ = list
            raise error

    def _run_statement(self, line: str) -> Any:
        __tracebackhide__ = True
        options = parse(line, cell=False, expand=self.shell.var_expand)
        statement = options.statement
        if not statement.strip():
            raise UsageError(
                f"%{MAGIC} needs a statement: %{MAGIC} y = program(x); "
                f"for a whole cell begin it with %%{MAGIC}"
            )
        code = self._compile(statement)
        session = CaptureSession(self.shell, line, is_cell=False)
        with session:
            exec(code, self.shell.user_global_ns, self.shell.user_ns)
        return session.capture if options.give_back else None

    def _compile(self, statement: str) -> Any:
        source = self.shell.transform_cell(statement)
        name = self.shell.compile.cache(source, self.shell.execution_count)
        tree = self.shell.compile.ast_parse(source, filename=name)
        if any(isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in _own_scope(tree)):
            raise UsageError(
                f"%{MAGIC} cannot await: put the statement into a cell that begins with %%{MAGIC}"
            )
        return self.shell.compile(tree, name, "exec")


ProfileMagics.trtprofile.__doc__ = help_text()


def _own_scope(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes that are not inside a function of their own."""
    found: list[ast.AST] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
    return found


def install(shell: Any) -> None:
    """Register the magics."""
    shell.register_magics(ProfileMagics)


def uninstall(shell: Any) -> None:
    """Remove the magics."""
    for table in shell.magics_manager.magics.values():
        table.pop(MAGIC, None)
    shell.magics_manager.registry.pop(ProfileMagics.__name__, None)
