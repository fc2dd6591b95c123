"""A format is one folder and one line in the registry: a made-up CSV trace, added from outside."""

from __future__ import annotations

import gzip
import io
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import torchtrt_viz as tv
from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.formats import FORMATS

READER = '''
"""CSV traces: a line of column names, then a line for each span."""

import csv
import io

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

FORMAT = "csv trace"

_HEADER = "name,start_us,dur_us,thread,domain"


def sniff(head, filename):
    return head.split(b"\\n", 1)[0].strip() == _HEADER.encode()


def read(source, options):
    rows = list(csv.reader(io.StringIO(source.read().decode("utf-8"))))[1:]
    spans = [_span(row, line, source.name) for line, row in enumerate(rows, start=2) if row]
    cut = rows and len(rows[-1]) < 5
    threads = sorted({span["thread"] for span in spans})
    if cut:
        options.report([Repair("truncated", f"line {len(rows) + 1} stops early", source.name)])
    spans = [span for span in spans if span["name"]]
    table = {key: [span[key] for span in spans] for key in ("name", "start_ns", "dur_ns", "domain")}
    track = [threads.index(span["thread"]) for span in spans]
    rank = -1 if options.rank is None else options.rank
    return TraceData(
        spans=schema.SPANS.frame(
            {**table, "kind": "operator", "track": track, "self_ns": table["dur_ns"], "rank": rank},
            length=len(spans),
        ),
        tracks=schema.TRACKS.frame({"label": threads, "process": None, "thread": threads}),
        args=MappingArgs({row: {"line": span["line"]} for row, span in enumerate(spans)}),
        meta={
            "format": FORMAT, "sources": [source.name], "clock": "microseconds of the writer's clock",
            "base_ns": None, "rank": options.rank, "warnings": options.warnings,
        },
    )


def _span(row, line, path):
    if len(row) < 5:
        return {"name": "", "thread": row[3] if len(row) > 3 else "?"}
    name, start, dur, thread, domain = row
    try:
        start_ns, dur_ns = round(float(start) * 1000), round(float(dur) * 1000)
    except ValueError as error:
        raise TraceFormatError(
            f"line {line}: a time is no number", path=path, expected="microseconds", found=repr(row),
            hint="Write the trace again",
        ) from error
    return {
        "name": name, "start_ns": start_ns, "dur_ns": dur_ns,
        "thread": thread, "domain": domain, "line": line,
    }
'''

TRACE = b"""name,start_us,dur_us,thread,domain
load,0,1.5,main,host
conv,2,3,main,host
conv_kernel,2.5,2.25,stream 7,gpu
"""


@pytest.fixture(autouse=True)
def csv_format(tmp_path_factory, monkeypatch):
    """Lay out the room, and write the one line elsewhere."""
    root = tmp_path_factory.mktemp("elsewhere")
    room = root / "csv_traces"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "reader.py").write_text(textwrap.dedent(READER))
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.setitem(FORMATS, "csv trace", "csv_traces.reader")
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "csv_traces"]:
        del sys.modules[name]


def check(trace: tv.Trace) -> None:
    assert isinstance(trace, tv.Trace)
    assert trace.meta["format"] == "csv trace"
    assert trace.spans["name"].tolist() == ["load", "conv", "conv_kernel"]
    assert trace.spans["start_ns"].tolist() == [0, 2000, 2500]
    assert trace.spans["dur_ns"].tolist() == [1500, 3000, 2250]
    assert trace.spans["domain"].tolist() == ["host", "host", "gpu"]
    assert trace.tracks["label"].tolist() == ["main", "stream 7"]
    assert [trace.args[row] for row in range(3)] == [{"line": 2}, {"line": 3}, {"line": 4}]


def test_a_file_is_sniffed_by_its_content_and_read(tmp_path: Path) -> None:
    path = tmp_path / "without a suffix"
    for data in (TRACE, gzip.compress(TRACE)):
        path.write_bytes(data)
        check(tv.load(path))
        check(tv.load(data))
    assert tv.load(path).meta["sources"] == [str(path)]


def test_it_is_read_by_its_name_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_bytes(TRACE.replace(b"name,", b"title,", 1))
    with pytest.raises(TraceFormatError, match="not a trace that this package knows"):
        tv.load(path)
    check(tv.load(path, format="csv trace"))
    with pytest.raises(OptionError, match="csv trace"):
        tv.load(path, format="csv")


def zip_of(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"run/{name}.csv", data)
    return out.getvalue()


def test_it_is_found_in_a_folder_and_in_a_zip(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "rank0.csv").write_bytes(TRACE)
    (folder / "notes.txt").write_text("nothing")
    check(tv.load(folder))
    archive = tmp_path / "run.zip"
    archive.write_bytes(zip_of(rank0=TRACE))
    check(tv.load(archive))
    assert tv.load(archive).meta["sources"] == [f"{archive}!run/rank0.csv"]


def test_several_are_a_session(tmp_path: Path) -> None:
    archive = tmp_path / "run.zip"
    archive.write_bytes(zip_of(rank0=TRACE, rank1=TRACE))
    session = tv.load(archive)
    assert isinstance(session, tv.Session)
    assert session.ranks[["format", "state"]].values.tolist() == [["csv trace", "ok"]] * 2
    for row in range(2):
        check(session.trace(row=row))


WRONG = TRACE.replace(b"conv,2,3", b"conv,soon,3")


@pytest.mark.parametrize("packed", [False, True])
def test_errors_carry_file_and_line(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("run.zip" if packed else "rank0.csv")
    path.write_bytes(zip_of(rank0=WRONG) if packed else WRONG)
    with pytest.raises(TraceFormatError, match="line 3: a time is no number") as caught:
        tv.load(path)
    assert caught.value.path == (f"{path}!run/rank0.csv" if packed else str(path))
    assert "soon" in caught.value.found


def test_repairs_are_warnings_and_strict_makes_errors_of_them(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_bytes(TRACE + b"half a li")
    trace = tv.load(path)
    assert [(w.code, w.path) for w in trace.meta["warnings"]] == [("truncated", str(path))]
    assert trace.spans["name"].tolist() == ["load", "conv", "conv_kernel"]
    with pytest.raises(TraceFormatError, match="line 5 stops early"):
        tv.load(path, strict=True)


def test_the_formats_of_the_package_do_not_notice() -> None:
    sample = Path(__file__).parents[2] / "sample_traces" / "eager.pt.trace.json"
    assert tv.load(sample).meta["format"] == "kineto"
