"""The house keeps its plan: imports go down only, nothing runs in circles, folders stay small.

The plan is the table of rooms in ARCHITECTURE.md, read here, so that page and code cannot differ. Imports
count wherever they stand: at the top of a module, inside a function, for type checkers only, in a stub.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from import_graph import ImportGraph, circles
from public_signatures import PublicSignatures

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "torchtrt_viz"
GRAPH = ImportGraph(ROOT / PACKAGE)
FACADES = ("trace", "session", "files", "captures")
LARGEST_FOLDER = 25

# Keyword arguments that no signature can list, and what they are.
OPEN_KEYWORDS = {
    "model.session_data.SessionData.select": "values of columns of `ranks`",
    "model.session_data.SessionData.trace": "values of columns of `ranks`",
    "session.Session.select": "values of columns of `ranks`",
    "session.Session.trace": "values of columns of `ranks`",
    "model.session_data.SessionData.map": "arguments of the caller's own function",
    "session.Session.map": "arguments of the caller's own function",
    "serving.rank.profiler.RankProfiler.annotate": "labels that are written into the range's name",
}


@cache
def plan() -> dict[str, set[str]]:
    """Rooms as ARCHITECTURE.md lists them, bottom up, and what each may import."""
    rows = re.findall(
        r"^\| (`[^|]+) \|[^|]*\|([^|]*)\|$",
        (ROOT / "ARCHITECTURE.md").read_text().split("<!-- rooms -->")[1].split("<!-- /rooms -->")[0],
        flags=re.MULTILINE,
    )
    rooms: dict[str, set[str]] = {}
    for names, allowed in rows:
        for name in _names(names):
            rooms[name] = set(_names(allowed))
    return rooms


def _names(cell: str) -> list[str]:
    return [name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`([^`]+)`", cell)]


@cache
def rooms_of_the_code() -> set[str]:
    return {GRAPH.room(module) for module in GRAPH.modules}


def test_every_room_is_in_the_plan_and_every_room_of_the_plan_exists():
    assert set(plan()) == rooms_of_the_code()


def test_the_plan_is_ordered_bottom_up():
    seen: set[str] = set()
    for room, allowed in plan().items():
        assert allowed <= seen, f"{room} may import {sorted(allowed - seen)}, which does not stand below it"
        seen.add(room)


@pytest.mark.parametrize("room", sorted(rooms_of_the_code()))
def test_a_room_imports_only_what_the_plan_allows(room: str):
    allowed = {room, *plan()[room]}
    wrong = [
        str(found)
        for found in GRAPH.own
        if GRAPH.room(found.importer) == room and GRAPH.room(found.imported) not in allowed
    ]
    assert not wrong, "\n".join(wrong)


@cache
def folder_circles() -> list[tuple[str, ...]]:
    between = ((GRAPH.folder(found.importer), GRAPH.folder(found.imported)) for found in GRAPH.own)
    return [tuple(group) for group in circles(edge for edge in between if edge[0] != edge[1])]


def test_folders_do_not_import_one_another_in_a_circle():
    new = set(folder_circles())
    assert not new, [
        str(found)
        for circle in new
        for found in GRAPH.own
        if {GRAPH.folder(found.importer), GRAPH.folder(found.imported)} <= set(circle)
        and GRAPH.folder(found.importer) != GRAPH.folder(found.imported)
    ]


def test_no_circle_of_modules_has_more_than_two():
    found = circles((found.importer, found.imported) for found in GRAPH.own)
    assert [circle for circle in found if len(circle) > 2] == []


def test_no_folder_holds_more_modules_than_one_can_overlook():
    sizes = Counter(str(path.parent.relative_to(ROOT)) for path in GRAPH.modules.values())
    assert {folder: size for folder, size in sizes.items() if size > LARGEST_FOLDER} == {}


@cache
def open_signatures() -> set[str]:
    """Public functions and methods that take any keyword argument, without what is listed above."""
    signatures = PublicSignatures(GRAPH)
    public = {}
    for facade in FACADES:
        public |= signatures.of_module(f"{PACKAGE}.{facade}")
    for module, path in GRAPH.modules.items():
        if path.name == "__init__.py" and path.with_suffix(".pyi").exists():
            public |= signatures.of_stub(module)
    assert f"{PACKAGE}.files.load" in public
    assert f"{PACKAGE}.trace.Trace.operators" in public
    found = {name.removeprefix(f"{PACKAGE}.") for name, node in public.items() if node.args.kwarg}
    return found - set(OPEN_KEYWORDS)


def test_public_signatures_list_their_parameters():
    assert open_signatures() == set()


def unexplained(folder: str) -> list[str]:
    """Imports of our own modules inside functions, with no comment on them, above them, or for the module."""
    return [
        str(found)
        for found in GRAPH.own
        if found.in_function and not found.commented and GRAPH.folder(found.importer) == folder
    ]


@pytest.mark.parametrize("folder", sorted({GRAPH.folder(module) for module in GRAPH.modules}))
def test_an_import_inside_a_function_says_why(folder: str):
    """The one reason is an optional or slow dependency, or a module of ours that pulls one in."""
    assert not unexplained(folder), "\n".join(unexplained(folder))
