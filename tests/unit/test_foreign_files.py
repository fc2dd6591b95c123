"""Files that are no traces: loading says what they are, wherever they lie, and never crashes over one."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import sqlite3
import struct
import zipfile
from pathlib import Path

import pytest
from rank_traces import simple_events, trace_json, write

import torchtrt_viz as tv
from torchtrt_viz.cli import main
from torchtrt_viz.formats.io.foreign import told_by_head

TRACE = trace_json(simple_events(), rank=0)


def database(*tables: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for table in tables:
        connection.execute(f"create table {table} (id integer)")
    data = connection.serialize()
    connection.close()
    return data


def zip_of(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return out.getvalue()


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field of a protobuf (shorter than 128 bytes)."""
    return bytes([number << 3 | 2, len(data)]) + data


NODE = field(1, field(1, b"dense/MatMul") + field(2, b"MatMul"))
PLANE = field(1, b"\x08\x01" + field(2, b"/device:GPU:0") + field(3, b"\x08\x01"))
FILES: dict[str, tuple[str, bytes, str]] = {
    "lfs": (
        "rank1.json",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99\n",
        "Git LFS pointer",
    ),
    "annex": ("a.json", b"/annex/objects/SHA256E-s12--00.json\n", "git-annex pointer"),
    "annex link": ("a.json", b"../.git/annex/objects/aa/bb/SHA256E-s12--00", "git-annex pointer"),
    "rpd": ("a.rpd", database("rocpd_string", "rocpd_api", "rocpd_op"), "rpd database.*rpd2tracing"),
    "sqlite": ("a.db", database("people"), "an SQLite database"),
    "sqlite named as an export": ("a.sqlite", database("people"), "an SQLite database"),
    "nsys-rep": (
        "run 1.nsys-rep",
        b"\x01\x02\x03\x04" * 9,
        "Nsight Systems.*nsys export --type sqlite --output 'run 1'.sqlite 'run 1.nsys-rep'",
    ),
    "ncu-rep": ("a.ncu-rep", b"NVR\0" + bytes(40), "Nsight Compute"),
    "xplane": ("vm.xplane.pb", PLANE, "XPlane"),
    "xplane of any name": ("trace", PLANE, "XPlane"),
    "graph": ("frozen.pb", NODE, "GraphDef"),
    "cpuprofile": (
        "a.cpuprofile",
        json.dumps({"nodes": [{"id": 1, "callFrame": {}}], "samples": [1]}).encode(),
        "CPU profile of V8",
    ),
    "samples": ("a.json", b'{"stackFrames": {"1": {"name": "f"}}, "samples": []}', "profile of samples"),
    "long samples": ("a.json", b'{"samples": [' + b"1," * 60_000 + b"1]}", "profile of samples"),
    "speedscope": (
        "a.json",
        b'{"version":"0.0.1","$schema":"https://www.speedscope.app/file-format-schema.json"}',
        "speedscope",
    ),
    "pprof": ("a.pb.gz", field(1, b"\x08\x01\x10\x02") + field(1, b"\x08\x03\x10\x04"), "pprof"),
    "html": ("trace.json", b"<!DOCTYPE html>\n<html><title>Sign in</title>", "HTML page"),
    "systrace": ("a.html", b'<!DOCTYPE html><html><script class="trace-data">', "systrace"),
    "ftrace": ("a.txt", b"# tracer: nop\n#\n# entries-in-buffer\n", "ftrace"),
    "s3": (
        "trace.json.gz",
        b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>',
        "object store.*AccessDenied",
    ),
    "memory": ("a.pickle", pickle.dumps({"segments": [], "device_traces": []}), "memory snapshot"),
    "pickle": ("a.pkl", pickle.dumps([1]), "pickle"),
    "checkpoint": ("model.pt", zip_of(m__data_pkl=b"x"), "torch"),
    "program of any name": (
        "model.bin",
        zip_of(**{"m__data.pkl": b"\x80\x02}q\0.", "m__version": b"3"}),
        "checkpoint or program of torch",
    ),
    "pt2": ("model.pt2", zip_of(m__version=b"1"), "exported program"),
    "pte": ("model.pte", b"\x18\0\0\0ET12" + bytes(40), "ExecuTorch program"),
    "safetensors": (
        "a.safetensors",
        struct.pack("<Q", 40) + b'{"w":{"dtype":"F32"}}'.ljust(40),
        "safetensors",
    ),
    "onnx": ("a.onnx", b"\x08\x08\x12\x07pytorch\x1a\x031.0\x3a\x02\x0a\0", "ONNX"),
    "parquet": ("a.parquet", b"PAR1" + bytes(40), "Parquet.*read_parquet"),
    "nvprof": ("a.csv", b"==12== NVPROF is profiling process 12\n", "nvprof"),
    "nsys stats": ("a.csv", b"Time (%),Total Time (ns),Instances,Name\n99.0,1,1,k\n", "nsys stats"),
    "rocprof": ("results.csv", b'"Index","KernelName","gpu-id"\n0,"k",1\n', "rocprof"),
    "pdf": ("a.pdf", b"%PDF-1.7\n", "PDF"),
    "elf": ("a.out", b"\x7fELF\x02\x01\x01" + bytes(40), "program or library"),
    "object": ("a.json", b" {} \n", "empty JSON object"),
    "list": ("a.json", b"[ ]", "empty JSON list"),
    "repr": ("a.json", b"{'traceEvents': [{'ph': 'X', 'ts': 1}]}", "Python dict"),
    "log lines": ("a.jsonl", b'{"loss": 1}\n{"loss": 0.5}\n', "JSON lines"),
    "event lines": ("a.jsonl", b'{"ph":"X","ts":1,"dur":2}\n{"ph":"X","ts":4,"dur":2}\n', "line of JSON per"),
    "xz": ("a.json.xz", b"\xfd7zXZ\0" + bytes(40), "compressed with xz"),
    "companion": ("._rank0.json", b"\0\5\x16\7\0\2\0\0Mac OS X", "companion file of macOS"),
}
TOLD_BY_NAME = ("nsys-rep",)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_no_trace_is_named_as_what_it_is(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filename, data, what = FILES[kind]
    path = tmp_path / filename
    path.write_bytes(data)
    for given in (path, data):
        if given is data and (kind in TOLD_BY_NAME or data.startswith(b"PK")):
            continue
        with pytest.raises(tv.TraceFormatError, match=f"(?s){what}") as raised:
            tv.load(given)
        if given is path:
            assert raised.value.path == str(path)
            assert raised.value.hint
    with pytest.raises(SystemExit) as left:
        main(["show", str(path)])
    assert left.value.code == 2
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert re.search(f"(?s){what}", re.sub(r"\s+", " ", shown))


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in ("companion",)])
def test_beside_a_trace_and_in_an_archive_it_does_no_harm(tmp_path: Path, kind: str) -> None:
    filename, data, _ = FILES[kind]
    write(tmp_path / "run" / "rank0.json", TRACE)
    (tmp_path / "run" / filename).write_bytes(data)
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("rank0.json", TRACE)
        archive.writestr(filename, data)
    for path in (tmp_path / "run", tmp_path / "run.zip"):
        loaded = tv.load(path)
        trace = loaded if isinstance(loaded, tv.Trace) else loaded[0]
        assert len(trace.spans) == 6


def test_what_profilers_write_beside_a_trace_is_said(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", TRACE)
    for kind in ("rpd", "memory", "xplane", "pdf"):
        (tmp_path / FILES[kind][0]).write_bytes(FILES[kind][1])
    trace = tv.load(tmp_path, strict=True)
    assert isinstance(trace, tv.Trace)
    said = {Path(w.path).name: w.message for w in trace.meta["warnings"] if w.code == "not_a_trace"}
    assert sorted(said) == ["a.pickle", "a.rpd", "vm.xplane.pb"]
    assert "rocmProfileData" in said["a.rpd"]


def test_a_pointer_in_place_of_a_rank_is_a_lost_rank(tmp_path: Path) -> None:
    write(tmp_path / "rank0.json", TRACE)
    (tmp_path / "rank1.json").write_bytes(FILES["lfs"][1])
    session = tv.load(tmp_path)
    row = session.ranks.set_index("rank").loc[1]
    assert row["state"] == "damaged"
    assert "git lfs pull" in row["error"]


def test_a_folder_of_nothing_else_says_what_each_is(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_bytes(FILES["sqlite"][1])
    with pytest.raises(tv.TraceFormatError, match="an SQLite database"):
        tv.load(tmp_path)
    (tmp_path / "b.txt").write_text("x")
    with pytest.raises(tv.TraceFormatError, match=r"2 other files \(a.sqlite: an SQLite .*, b.txt\)"):
        tv.load(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a_trace_in_utf_16_or_32_is_read(tmp_path: Path, encoding: str) -> None:
    plain = tv.load(TRACE)
    path = write(tmp_path / "rank0.json", TRACE.decode().replace("aten::addmm", "aten::ädd").encode(encoding))
    for given in (path, gzip.compress(path.read_bytes())):
        trace = tv.load(given)
        assert trace.spans["dur_ns"].tolist() == plain.spans["dur_ns"].tolist()
        assert trace.spans["name"].tolist()[2] == "aten::ädd"
        assert trace.args.read([0]) == plain.args.read([0])
        assert [w.code for w in trace.meta["warnings"]] == ["transcoded"]


def test_what_was_compressed_twice_is_read(tmp_path: Path) -> None:
    plain = tv.load(TRACE)
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(gzip.compress(TRACE)))
    trace = tv.load(path)
    assert trace.spans["dur_ns"].tolist() == plain.spans["dur_ns"].tolist()
    assert [w.code for w in trace.meta["warnings"]] == ["compressed_twice"]
    assert trace.meta["rank"] == 0
    write(tmp_path / "rank1.json", trace_json(simple_events(2), rank=1))
    session = tv.load(tmp_path)
    assert session.ranks["rank"].tolist() == [0, 1]
    assert [w.code for w in session[0].meta["warnings"]] == ["compressed_twice"]


def test_an_archive_that_was_compressed_twice_is_read(tmp_path: Path) -> None:
    from rank_traces import tar_gz

    members = {f"rank{r}.json": trace_json(simple_events(1 + r), rank=r) for r in (0, 1)}
    path = tmp_path / "run.tar.gz"
    path.write_bytes(gzip.compress(tar_gz(members)))
    session = tv.load(path)
    assert session.ranks["rank"].tolist() == [0, 1]
    assert len(session[1].spans) == 6


def test_endless_wrapping_is_refused(tmp_path: Path) -> None:
    data = TRACE
    for _ in range(8):
        data = gzip.compress(data)
    with pytest.raises(tv.TraceFormatError, match="again and again"):
        tv.load(data)


@pytest.mark.parametrize(
    "head",
    [
        b"{" * 65536,
        b'{"ph":' * 11000,
        b" " * 65536,
        b"<!--" * 16384,
        b"\x08\x01\x12\x07" + b"a" * 65000,
        b"\x80\x04" + b"x" * 65000,
        b"SQLite format 3\0" + b"rocpd_" * 10000,
        b"<html " * 10000,
        b'{"a":{' * 10000,
        b"'" * 65536,
        b"==1" * 20000,
    ],
)
def test_hostile_beginnings_are_told_in_bounded_steps(head: bytes) -> None:
    told_by_head(head, "x.json")  # the test's limit of time ends what has no bound


def test_no_trace_of_ours_is_taken_for_something_else(corpus: Path) -> None:
    for path in sorted((corpus / "kineto").glob("*.json.gz")):
        with gzip.open(path) as stream:
            assert told_by_head(stream.read(1 << 16), path.name, surely=True) is None
