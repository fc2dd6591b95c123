"""How the rooms of the C++ code may know one another, read from their #include lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

#: Room -> rooms that it may include, as capture_ext/CMakeLists.txt has them.
MAY_INCLUDE = {
    "columns": set(),
    "formats": {"columns"},
    "core": {"formats"},
    "tensorrt": {"core"},
    "host_engine": {"core", "formats"},
    "executorch": {"core", "formats", "host_engine", "tensorrt"},
    "torch_ops": {"core", "executorch"},
    "bindings": {"columns", "core", "executorch", "formats", "tensorrt"},
}
GROUND = {"core/error.hpp", "core/visibility.hpp"}
#: Libraries of others -> rooms and files that may include their headers.
OTHERS = {
    "executorch/runtime/": ("executorch", "host_engine", "bindings"),
    "torch/": (),  # its functions are found in the process: torch_ops/torch_functions.hpp
    "ATen/": (),
    "c10/": (),
    "NvInfer": ("tensorrt",),
    "cuda_runtime": ("tensorrt",),
    "nanobind/": ("bindings",),
    "Python.h": ("bindings",),
    "simdjson": (
        "formats/kineto/extract.hpp",
        "formats/engine/graph.cpp",
        "core/blob.cpp",
    ),
}


def included(path: Path, brackets: str) -> list[str]:
    return re.findall(rf"^#include {brackets[0]}(.+?){brackets[1]}", path.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def sources(root: Path) -> dict[str, Path]:
    top = root / "capture_ext"
    return {
        str(path.relative_to(top)): path
        for room in MAY_INCLUDE
        for path in sorted((top / room).rglob("*.[ch]pp"))
    }


def test_rooms_include_only_what_lies_under_them(sources: dict[str, Path]) -> None:
    wrong = []
    for name, path in sources.items():
        room = name.split("/")[0]
        for header in included(path, '""'):
            if header in GROUND or header.split("/")[0] in MAY_INCLUDE[room] | {room}:
                assert header in sources, f"{name} includes {header}, which is not there"
            else:
                wrong.append(f"{name} includes {header}")
    assert not wrong


def test_libraries_of_others_stay_in_the_rooms_made_for_them(sources: dict[str, Path]) -> None:
    wrong = []
    for name, path in sources.items():
        for header in included(path, "<>"):
            for start, places in OTHERS.items():
                if header.startswith(start) and not name.startswith(places):
                    wrong.append(f"{name} includes <{header}>")
    assert not wrong


def test_the_bindings_see_nothing_of_the_json_parser(sources: dict[str, Path]) -> None:
    seen: set[str] = set()
    todo = [name for name in sources if name.startswith("bindings/")]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        assert not [header for header in included(sources[name], "<>") if "simdjson" in header], name
        todo += included(sources[name], '""')
    assert "formats/kineto/decoder.hpp" in seen
