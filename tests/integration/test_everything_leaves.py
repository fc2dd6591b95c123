"""Pages, pictures, reports and exports work for every trace that loads, whatever its names and times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import torchtrt_viz as tv
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.cli import group
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.model.schema import EVENTS
from torchtrt_viz.report.table import write_table
from torchtrt_viz.trace import Trace

SHARED = Path(__file__).resolve().parents[3] / "shared"
QUICK_BYTES, MOST_BYTES, QUICK_FILES = 20_000, 3_000_000, 18
MOST_ROWS = 2_000  # of a sheet or a Markdown table: the writers are the same for more


def files() -> tuple[list[str], list[str]]:
    """Return names of files in the shared folder: a small one of each folder, and the others."""
    found = [path for root in ("cases", "corpus") for path in (SHARED / root).rglob("*") if path.is_file()]
    found = sorted(path for path in found if path.stat().st_size < MOST_BYTES)
    small: dict[Path, Path] = {}
    for path in found:
        if path.stat().st_size < QUICK_BYTES and path.suffix != ".md":
            small.setdefault(path.parent, path)
    quick = sorted(small.values())[:QUICK_FILES]
    names = ([path.relative_to(SHARED).as_posix() for path in some] for some in (quick, found))
    first, every = names
    return first, [name for name in every if name not in first]


QUICK, SLOW = files()


def every_export(loaded: Any, path: Path, folder: Path) -> None:
    """Write whatever there is to write; an error fails the test."""
    page = folder / "page.html"
    done = CliRunner().invoke(group, ["report", str(path), "-o", str(page)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "</html>" in page.read_text(encoding="utf-8", errors="replace")
    assert loaded._repr_html_()
    traces = [loaded] if isinstance(loaded, Trace) else [trace for _, trace in loaded.traces()][:2]
    for trace in traces:
        for suffix in (".pftrace", ".json"):
            back = tv.load(trace.to_perfetto(folder / f"t{suffix}", args=True))
            assert len(back.tracks) <= max(1, 2 * len(trace.tracks) + len(trace.counters))
        widget = trace.timeline()
        widget.write_svg(folder / "t.svg")
        opened, _ = widget.service.answer({"op": "open"})
        assert "error" not in opened
        frames = {name: getattr(trace, name)() for name in TABLES}
        frames |= {documented.name: getattr(trace, documented.name) for documented in EVENTS}
        for name, frame in frames.items():
            for suffix in (".csv", ".parquet"):
                write_table(frame, folder / f"{name}{suffix}")
            for suffix in (".xlsx", ".md"):
                write_table(frame.head(MOST_ROWS), folder / f"{name}{suffix}")


def leaves(name: str, folder: Path) -> None:
    try:
        loaded = tv.load(SHARED / name)
    except TorchTrtVizError as error:
        pytest.skip(f"does not load: {error}"[:120])
    every_export(loaded, SHARED / name, folder)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared, which lies beside a development checkout")
@pytest.mark.parametrize("name", QUICK)
def test_a_file_of_each_folder(name: str, tmp_path: Path) -> None:
    leaves(name, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared, which lies beside a development checkout")
@pytest.mark.parametrize("name", SLOW)
def test_all_files(name: str, tmp_path: Path) -> None:
    leaves(name, tmp_path)


def complete(name: str, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def instant(name: str, ts: float) -> dict[str, Any]:
    return {"ph": "i", "name": name, "pid": 1, "tid": 1, "ts": ts, "s": "t"}


def counter(name: str, ts: float, **values: Any) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": 1, "ts": ts, "args": values}


def named(what: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 1, "tid": 1, "args": {"name": name}}


HOSTILE = '</script><img src=x onerror="alert(1)">\u2028=cmd|x\x01\x7f'
EXTREMES: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "only metadata": [named("process_name", "p"), named("thread_name", "t")],
    "only instants": [instant("a", 5), instant("b", -9.2e15)],
    "only counters": [counter("c", 5, v=1), counter("c", -9.2e15, v="NaN", w=1e308)],
    "one span of no length": [complete("a", 5, 0)],
    "negative times": [complete("a", -5, 2), complete("b", -3, 2)],
    "zero beside an epoch": [complete("a", 0, 0), complete("b", 1.7e15, 3)],
    "centuries apart": [complete("a", -9.2e15, 1), complete("b", 9.2e15, 1)],
    "a span of centuries": [complete("a", 0, 9.2e15), complete("b", 9e15, 1e14)],
    "no usable time": [complete("a", "x", 0), {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": 1}],
    "hostile names": [
        complete(HOSTILE, 1, 2, args={HOSTILE: HOSTILE, "n": [1, {"a": None}]}),
        complete("\ud800", 5, 2, cat=HOSTILE, pid=HOSTILE, tid=HOSTILE),
        instant(HOSTILE, 4),
        counter(HOSTILE, 3, **{HOSTILE: 1}),
        named("process_name", HOSTILE),
        named("thread_name", HOSTILE),
    ],
    "no names": [complete("", 1, 2), {"ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 1}],
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": EXTREMES[name]}))
    loaded = tv.load(path)
    every_export(loaded, path, tmp_path)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    length = loaded.duration_ns
    assert length is None or length >= 0
