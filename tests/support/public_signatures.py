"""The signatures that users see, read from the source: no module is imported, so no extra is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from import_graph import ImportGraph

Function = ast.FunctionDef | ast.AsyncFunctionDef
_CALLED_DIRECTLY = ("__init__", "__call__")


class PublicSignatures:
    """Functions, and methods of classes, that `import torchtrt_viz` offers."""

    def __init__(self, graph: ImportGraph) -> None:
        self._graph = graph
        self._trees = graph.trees

    def of_module(self, module: str) -> dict[str, Function]:
        """Return what a module defines under public names, by `module.function` or `module.Class.method`."""
        found: dict[str, Function] = {}
        for node in self._trees[module].body:
            if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
                found |= self._of_definition(module, node)
        return found

    def of_stub(self, package: str) -> dict[str, Function]:
        """Return what the names are that the stub of a package lists."""
        found: dict[str, Function] = {}
        stub = self._graph.modules[package].with_suffix(".pyi")
        for module, name in self._names(package, ast.parse(stub.read_text())):
            definition = self._definition(module, name)
            if definition is not None:
                found |= self._of_definition(*definition)
        return found

    def _names(self, module: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
        for statement in ast.walk(tree):
            if isinstance(statement, ast.ImportFrom):
                base = self._graph.base(module, statement)
                yield from ((base, alias.name) for alias in statement.names)

    def _definition(self, module: str, name: str) -> tuple[str, ast.ClassDef | Function] | None:
        """Follow a name to the class or function behind it; None for a value or another package's name."""
        if module not in self._trees:
            return None
        for node in self._trees[module].body:
            if isinstance(node, ast.ClassDef | Function) and node.name == name:
                return module, node
        for base, imported in self._names(module, self._trees[module]):
            if imported == name:
                return self._definition(base, name)
        return None

    def _of_definition(self, module: str, node: ast.ClassDef | Function) -> dict[str, Function]:
        if not isinstance(node, ast.ClassDef):
            return {f"{module}.{node.name}": node}
        found: dict[str, Function] = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and (definition := self._definition(module, base.id)):
                found |= self._of_definition(*definition)
        for method in node.body:
            if isinstance(method, Function) and (
                method.name in _CALLED_DIRECTLY or not method.name.startswith("_")
            ):
                found[f"{module}.{node.name}.{method.name}"] = method
        return found
