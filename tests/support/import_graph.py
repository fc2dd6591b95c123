"""The imports of a package, read from its source: those inside functions and for type checkers included."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# A module whose docstring says this, and what is slow, explains all its imports at once.
_FOR_ALL = "import them when they are called"


@dataclass(frozen=True)
class Import:
    """One imported module; `line` is where the statement begins in `importer`.

    `commented` is told of imports inside functions only.
    """

    importer: str
    imported: str
    line: int
    in_function: bool
    commented: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


class ImportGraph:
    """Modules of a package and what each imports.

    `modules` maps a module's dotted name to its file; `own` has the imports of the package's own modules.
    The public names in a stub (`__init__.pyi`) count as imports of its package: `lazy_loader` carries them
    out.
    """

    def __init__(self, package: Path) -> None:
        self.package = package
        self.modules = {_dotted(path, package): path for path in sorted(package.rglob("*.py"))}
        self.trees = {name: ast.parse(path.read_text()) for name, path in self.modules.items()}
        self.imports = [found for name in self.modules for found in self._imports_of(name)]
        self.own = [found for found in self.imports if found.imported in self.modules]

    def _imports_of(self, module: str) -> Iterator[Import]:
        path = self.modules[module]
        yield from self._in_file(module, path, self.trees[module])
        stub = path.with_suffix(".pyi")
        if path.name == "__init__.py" and stub.exists():
            yield from self._in_file(module, stub, ast.parse(stub.read_text()))

    def _in_file(self, module: str, path: Path, tree: ast.Module) -> Iterator[Import]:
        comments: set[int] | None = None
        for_all = _FOR_ALL in " ".join((ast.get_docstring(tree) or "").split())
        for statement, first_of_run, in_function in _import_statements(tree, in_function=False):
            if in_function and comments is None:  # reading them is slow, and nothing else needs them
                comments = _comment_lines(path.read_text())
            last = statement.end_lineno or statement.lineno
            around = range(first_of_run - 1, last + 1)
            commented = for_all or not (comments or set()).isdisjoint(around)
            for imported in self._targets(module, statement):
                if imported != module:
                    yield Import(module, imported, statement.lineno, in_function, commented)

    def _targets(self, module: str, statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
            return
        base = self.base(module, statement)
        for alias in statement.names:
            whole = f"{base}.{alias.name}"
            yield whole if whole in self.modules else base

    def base(self, module: str, statement: ast.ImportFrom) -> str:
        """Return what stands between `from` and `import`, dots resolved."""
        if not statement.level:
            return statement.module or ""
        is_package = self.modules[module].name == "__init__.py"
        parts = module.split(".")
        parents = parts[: len(parts) - statement.level + is_package]
        return ".".join([*parents, *filter(None, [statement.module])])

    # -- views of the graph ----------------------------------------------------------------------------

    def folder(self, module: str) -> str:
        """Folder of a module below the package, dotted; a file that lies in the package itself is its own."""
        inside = self.modules[module].relative_to(self.package).with_suffix("")
        parts = inside.parts if len(inside.parts) == 1 else inside.parts[:-1]
        return ".".join(parts)

    def room(self, module: str) -> str:
        """First part of the folder: the room that the layers are about."""
        return self.folder(module).split(".")[0]


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of two or more nodes that reach one another (strongly connected components), sorted."""
    targets: Mapping[str, set[str]] = defaultdict(set)
    for start, end in edges:
        targets[start].add(end)
    reach = {node: _reachable(node, targets) for node in list(targets)}
    groups = {
        tuple(sorted({other for other in reached if node in reach.get(other, ())}))
        for node, reached in reach.items()
        if node in reached
    }
    return sorted(list(group) for group in groups if len(group) > 1)


def _reachable(start: str, targets: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for node in targets.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _comment_lines(text: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0] for token in tokens if token.type == tokenize.COMMENT}


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements directly below a node; expressions hold none."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        below = getattr(node, field, None)
        if isinstance(below, list):
            yield from below


def _import_statements(
    node: ast.AST, *, in_function: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, int, bool]]:
    """Yield each import, the first line of the run of imports it is in, and whether a function holds it."""
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    run_begins = 0
    for child in _statements(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            run_begins = run_begins or child.lineno
            yield child, run_begins, inside
        else:
            run_begins = 0
            yield from _import_statements(child, in_function=inside)
