"""ETRecord: what the exporter wrote down about a program, read without torch, executorch or pickle.

An ETRecord is a zip. Of its members only JSON is read: ``debug_handle_map`` (instruction -> debug handles),
``delegate_map`` (instruction -> backend, and its identifiers -> debug handles) and the edge programs' graphs
(debug handle -> nodes, with operator, module and stack trace). Tensors are never opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source, archive_kind, archive_members

__all__ = ["Delegate", "ETRecord", "Method", "Node", "read_etrecord"]

MARKER = "ETRECORD_V0"
EDGE = "edge_dialect_exported_program"
NOT_GRAPHS = ("_state_dict", "_constants", "_example_inputs")
MAX_JSON_BYTES = 1 << 30
_MAX_NESTED_GRAPHS = 16
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages)[/\\]|[/\\]torch[/\\](nn|_|fx|export)")


@dataclass(frozen=True)
class Node:
    """A node of the exported graph.

    Attributes
    ----------
    name, op
        Name of the node, and its operator as ``namespace.operator.overload``.
    module, module_type
        Path of the module that called it ("" is the root; None not recorded), and that module's class.
    source
        ``file:line`` of the innermost frame outside of installed libraries (of any frame, where there is no
        such one); None not recorded.
    stack_trace
        The whole trace as recorded; None not recorded.
    """

    name: str
    op: str
    module: str | None = None
    module_type: str | None = None
    source: str | None = None
    stack_trace: str | None = None


@dataclass(frozen=True)
class Delegate:
    """A delegate call: its backend, and the handles behind each identifier that the backend may log."""

    backend: str
    handles: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Method:
    """What is recorded about one method; instructions are those of its execution plan."""

    name: str
    nodes: dict[int, list[Node]] = field(default_factory=dict)
    instructions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    delegates: dict[int, Delegate] = field(default_factory=dict)

    def handles(self, instruction: int, delegate_id: int | str | None) -> tuple[int, ...] | None:
        """Return the debug handles of an event by exact lookup; None when nothing is recorded for it.

        ``delegate_id`` is the identifier that a delegate logged, None for an event of the runtime itself.
        """
        if delegate_id is None:
            return self.instructions.get(instruction)
        delegate = self.delegates.get(instruction)
        return None if delegate is None else delegate.handles.get(str(delegate_id))

    def find(self, handles: tuple[int, ...]) -> list[Node]:
        """Return the nodes behind some handles, each once, in their order."""
        found: dict[int, Node] = {}
        for handle in handles:
            for node in self.nodes.get(handle, ()):
                found.setdefault(id(node), node)
        return list(found.values())


@dataclass
class ETRecord:
    """The methods of an ETRecord."""

    path: str
    methods: dict[str, Method]
    graph_id: int | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def mapped(self) -> bool:
        """Whether it can lead any event back to the graph."""
        return any(method.instructions for method in self.methods.values())


def read_etrecord(record_file: str | PathLike[str] | Source) -> ETRecord:
    """Read an ETRecord.

    Raises
    ------
    TraceFormatError
        When there is no such file, or it is not a whole ETRecord.
    """
    source = record_file if isinstance(record_file, Source) else Source(record_file)
    if source.member is not None:  # an archive within an archive is opened in memory
        source = Source(source.name, data=source.read())
    if archive_kind(source) != "zip":
        raise TraceFormatError(
            "not an ETRecord",
            path=source.name,
            offset=0,
            expected="a zip archive",
            found=repr(source.head(16)) if source.stored_bytes else "an empty file",
            hint="Write it with executorch: program.get_etrecord().save(path)",
        )
    sizes = dict(archive_members(source))
    if MARKER not in sizes:
        raise TraceFormatError(
            "not a whole ETRecord",
            path=source.name,
            expected=f"a member {MARKER}",
            found=", ".join(sorted(sizes)[:4]) or "an empty archive",
            hint="A file that was cut off opens as one of the archives inside it: copy or write it again",
        )
    record = ETRecord(source.name, {})
    reader = _Members(source, record, sizes)
    for name in sorted(sizes):
        method = _method_of(name)
        if method is not None and (document := reader.json(name)) is not None:
            target = record.methods.setdefault(method, Method(method))
            for handle, node in _nodes(document):
                target.nodes.setdefault(handle, []).append(node)
    for method, mapping in _per_method(reader.json("debug_handle_map"), _is_handles).items():
        target = record.methods.setdefault(method, Method(method))
        target.instructions = {
            instruction: handles
            for key, value in mapping.items()
            if (instruction := _number(key)) is not None and (handles := _handles(value)) is not None
        }
    for method, mapping in _per_method(reader.json("delegate_map"), _is_delegate).items():
        target = record.methods.setdefault(method, Method(method))
        target.delegates = {
            instruction: _delegate(value)
            for key, value in mapping.items()
            if (instruction := _number(key)) is not None and isinstance(value, dict)
        }
    graph_id = reader.json("export_graph_id")
    record.graph_id = graph_id if isinstance(graph_id, int) else None
    return record


class _Members:
    """JSON members of the archive; what cannot be read is noted and left out."""

    def __init__(self, source: Source, record: ETRecord, sizes: Mapping[str, int]) -> None:
        self._source = source
        self._record = record
        self._sizes = sizes

    def json(self, name: str) -> Any:
        if name not in self._sizes:
            return None
        try:
            return _parse(self._source.inside(name).read(MAX_JSON_BYTES))
        except (TraceFormatError, ValueError, RecursionError) as error:
            self._record.problems.append(f"member {name} cannot be read: {error}")
            return None


def _parse(text: str | bytes) -> Any:
    # The exporter's serialiser writes infinities (attention masks) as the bare token -Infinity.
    return json.loads(text)


def _method_of(member: str) -> str | None:
    """Return the method whose edge program a member is; writers before 1.0 kept one, without its name."""
    if member.endswith(NOT_GRAPHS):
        return None
    if member == EDGE:
        return "forward"
    return member[len(EDGE) + 1 :] if member.startswith(EDGE + "/") else None


def _per_method(document: Any, is_entry: Any) -> dict[str, dict[str, Any]]:
    """Return {method: {instruction: entry}}; older writers kept {instruction: entry} of "forward"."""
    if not isinstance(document, dict):
        return {}
    if document and all(is_entry(value) for value in document.values()):
        return {"forward": document}
    return {method: mapping for method, mapping in document.items() if isinstance(mapping, dict)}


def _is_handles(value: object) -> bool:
    return isinstance(value, (int, list))


def _is_delegate(value: object) -> bool:
    return isinstance(value, dict) and "delegate_map" in value and "name" in value


def _number(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def _handles(value: object) -> tuple[int, ...] | None:
    values = value if isinstance(value, list) else [value]
    handles = tuple(dict.fromkeys(v for v in values if type(v) is int))
    return handles or None


def _delegate(value: dict[str, Any]) -> Delegate:
    mapping = value.get("delegate_map")
    handles = {
        identifier: found
        for identifier, entry in (mapping.items() if isinstance(mapping, dict) else ())
        if (found := _handles(entry)) is not None
    }
    return Delegate(str(value.get("name", "")), handles)


def _nodes(document: object) -> Iterator[tuple[int, Node]]:
    """Yield (debug handle, node) of a serialised exported program and of the graphs nested in it."""
    graphs = [(_get(document, "graph_module", "graph"), 0)]
    while graphs:
        graph, depth = graphs.pop()
        entries = _get(graph, "nodes")
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict):
                continue
            if depth < _MAX_NESTED_GRAPHS and "higher_order" in str(entry.get("target")):
                graphs += [(nested, depth + 1) for nested in _nested_graphs(entry)]
            metadata = entry.get("metadata")
            if not isinstance(metadata, dict) or not isinstance(metadata.get("debug_handle"), str):
                continue
            try:
                handles = _handles(_parse(metadata["debug_handle"]))
            except (ValueError, RecursionError):
                continue
            node = _node(entry, metadata)
            for handle in handles or ():
                yield handle, node


def _nested_graphs(entry: dict[str, Any]) -> Iterator[Any]:
    inputs = entry.get("inputs")
    for value in inputs if isinstance(inputs, list) else ():
        graph = _get(value, "arg", "as_graph", "graph")
        if graph is not None:
            yield graph


def _get(document: object, *keys: str) -> Any:
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _node(entry: dict[str, Any], metadata: dict[str, Any]) -> Node:
    target = str(entry.get("target", ""))
    before, _, op = target.partition(".ops.")
    stack = metadata.get("stack_trace")
    stack = stack if isinstance(stack, str) else None
    path, module_type = _module(metadata.get("nn_module_stack"))
    return Node(
        name=str(entry.get("name", "")),
        op=op or before,
        module=path,
        module_type=module_type,
        source=None if stack is None else _source(stack),
        stack_trace=stack,
    )


def _module(stack: object) -> tuple[str | None, str | None]:
    """Return path and class of the innermost module: the stack is ``key,path,class`` joined by ``;``."""
    if not isinstance(stack, str) or not stack:
        return None, None
    _, comma, rest = stack.rsplit(";", 1)[-1].partition(",")
    if not comma:
        return None, None
    path, comma, module_type = rest.rpartition(",")
    return (path, module_type) if comma else (rest, None)


def _source(stack: str) -> str | None:
    frames = _FRAME.findall(stack)
    if not frames:
        return None
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    file, line = (own or frames)[-1]
    return f"{file}:{line}"
