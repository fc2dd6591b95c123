"""What `load` reads: paths, bytes, file objects and URLs give the same trace, and leave nothing behind."""

from __future__ import annotations

import gc
import gzip
import io
import os
import pickle
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import pytest
import zstandard
from etdump_writer import etdump, profile, run
from rank_traces import simple_events, tar_gz, trace_json

import torchtrt_viz as tv
from torchtrt_viz.errors import MissingDependencyError, OptionError, TraceFormatError
from torchtrt_viz.formats.io import stored
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading import inputs

SAMPLES = Path(__file__).parents[2] / "sample_traces"
NAMES = ["ProfilerStep#0", "aten::linear", "aten::addmm", "ProfilerStep#1", "aten::linear", "aten::addmm"]
TRACE = trace_json(simple_events(), rank=3)


def with_args(count: int = 3) -> bytes:
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"op{i}",
            "pid": 1,
            "tid": 1,
            "ts": 10 * i,
            "dur": 5,
            "args": {"at": i},
        }
        for i in range(count)
    ]
    return trace_json(events)


class Unseekable(io.RawIOBase):
    """A stream that can only be read forward, in small pieces."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.pieces = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        self.pieces += 1
        block = self._data.read(min(len(buffer), 1000))
        buffer[: len(block)] = block
        return len(block)


@pytest.fixture
def remote():
    """An empty file system in memory, behind ``memory://``."""
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


@pytest.fixture
def copies_on_disk(monkeypatch):
    """Every copy goes to a temporary file, however small."""
    monkeypatch.setattr(stored, "IN_MEMORY_BYTES", 0)


def formats() -> dict[str, bytes]:
    log = (
        "[07/07/2026-02:11:40] [I] === Profile (10 iterations ) ===\n"
        "[07/07/2026-02:11:40] [I]    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer\n"
        "[07/07/2026-02:11:40] [I]       10.00       1.0000       1.0000     100.0   conv\n"
        "[07/07/2026-02:11:40] [I]       10.00       1.0000       1.0000     100.0   Total\n"
    )
    return {
        "kineto": TRACE,
        "etdump": etdump([run([profile("Method::execute", 100, 900), profile("OPERATOR_CALL", 200, 500)])]),
        "perfetto": (SAMPLES / "perfetto" / "region_000.perfetto.json").read_bytes(),
        "torchtrt": (SAMPLES / "package" / "demo_000_engine_execution_profile.trace").read_bytes(),
        "graph": (SAMPLES / "trex" / "region_000.graph.json").read_bytes(),
        "profile": (SAMPLES / "trex" / "region_000.profile.json").read_bytes(),
        "trtexec": log.encode(),
    }


def same(one: tv.Trace, other: tv.Trace) -> None:
    told = [column for column in one.spans if column not in ("run_id", "process")]  # named after the file
    assert one.spans[told].equals(other.spans[told])
    assert one.meta["format"] == other.meta["format"]
    rows = range(min(3, len(one.spans)))
    assert [one.args[row] for row in rows] == [other.args[row] for row in rows]


@pytest.mark.parametrize("name", sorted(formats()))
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_every_format_is_read_from_memory_as_from_disk(name: str, pack, tmp_path: Path) -> None:
    data = pack(formats()[name])
    path = tmp_path / "file"
    path.write_bytes(data)
    expected = tv.load(path)
    for given in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        same(tv.load(given), expected)


@pytest.mark.parametrize("name", ["kineto", "etdump", "graph", "trtexec"])
def test_every_format_is_read_from_a_temporary_copy(name: str, copies_on_disk, remote) -> None:
    data = formats()[name]
    expected = tv.load(data)
    same(tv.load(io.BytesIO(data)), expected)
    remote.pipe("/x/file", data)
    same(tv.load("memory://x/file"), expected)


def test_a_perfetto_file_that_the_package_writes_is_read_from_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.pftrace"
    tv.load(TRACE).to_perfetto(path)
    assert tv.load(path.read_bytes()).spans["name"].tolist() == tv.load(path).spans["name"].tolist()


def test_messages_name_what_was_given(tmp_path: Path, remote) -> None:
    assert tv.load(TRACE).meta["sources"] == ["<bytes>"]
    assert tv.load(io.BytesIO(TRACE)).meta["sources"] == ["<file>"]
    path = tmp_path / "rank7.json"
    path.write_bytes(TRACE)
    with path.open("rb") as stream:
        assert tv.load(stream).meta["sources"] == [str(path)]
        assert not stream.closed
    remote.pipe("/a/b.json", TRACE)
    assert tv.load("memory://a/b.json").meta["sources"] == ["memory://a/b.json"]
    with pytest.raises(TraceFormatError, match=r"<bytes>.*not a trace") as caught:
        tv.load(b"neither this nor that")
    assert caught.value.path == "<bytes>"


@pytest.mark.parametrize("given", [b"", bytearray(), memoryview(b""), io.BytesIO()])
def test_empty_content_is_an_error_that_says_so(given) -> None:
    with pytest.raises(TraceFormatError, match="empty file"):
        tv.load(given)


@pytest.mark.parametrize(
    "given", [None, 5, 1.5, True, {"a": 1}, object(), lambda: None, [3], [None], [["a"]], (TRACE, 4)]
)
def test_other_types_are_refused_with_what_is_accepted(given) -> None:
    with pytest.raises(OptionError, match="a path, a URL, a file opened in binary mode"):
        tv.load(given)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(OptionError, match="at least one"):
        tv.load([])


def test_text_is_refused_with_the_way_to_open_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TRACE)

    class Text:
        def read(self, size: int = -1) -> str:
            return "text"

    with path.open() as stream:
        for given in (stream, io.StringIO("{}"), Text()):
            with pytest.raises(OptionError, match=r"open\(path, 'rb'\)"):
                tv.load(given)


def test_a_file_object_is_read_from_where_it_stands_and_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "behind a header"
    path.write_bytes(b"HEADER" + TRACE)
    with path.open("rb") as stream:
        stream.seek(6)
        assert tv.load(stream).spans["name"].tolist() == NAMES
        assert not stream.closed
        assert stream.read() == b""


def test_a_closed_or_failing_file_object_is_named() -> None:
    stream = io.BytesIO(TRACE)
    stream.close()
    with pytest.raises(TraceFormatError, match=r"cannot be read.*closed"):
        tv.load(stream)

    class Failing:
        name = "theirs"

        def read(self, size: int) -> bytes:
            raise ConnectionError("gone")

    with pytest.raises(TraceFormatError, match=r"^theirs: .*ConnectionError: gone"):
        tv.load(Failing())


def test_a_stream_that_cannot_be_sought_is_read_piece_by_piece() -> None:
    stream = Unseekable(TRACE)
    assert tv.load(stream).spans["name"].tolist() == NAMES
    assert stream.pieces > 1


@pytest.mark.parametrize("given", ["object", "path"])
def test_a_pipe_is_read(given: str, tmp_path: Path) -> None:
    if given == "path":
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TRACE),))
        writer.start()
        trace = tv.load(path)
    else:
        out, into = os.pipe()
        writer = threading.Thread(target=lambda: os.fdopen(into, "wb").write(TRACE))
        writer.start()
        with os.fdopen(out, "rb") as stream:
            trace = tv.load(stream)
    writer.join()
    assert trace.spans["name"].tolist() == NAMES
    assert trace.args[1] == {}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_details_are_read_after_the_content_is_gone(pack, remote, tmp_path: Path) -> None:
    data = pack(with_args())
    expected = [{"at": 0}, {"at": 1}, {"at": 2}]
    changing = bytearray(data)
    path = tmp_path / "file"
    path.write_bytes(data)
    remote.pipe("/x/trace.json", data)
    stream = path.open("rb")
    traces = [tv.load(changing), tv.load(stream), tv.load("memory://x/trace.json")]
    changing[:] = bytes(len(changing))
    stream.close()
    path.unlink()
    remote.rm("/x/trace.json")
    for trace in traces:
        assert [trace.args[row] for row in range(3)] == expected


def test_details_are_read_from_a_temporary_copy_that_has_no_name(
    copies_on_disk, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    trace = tv.load(io.BytesIO(with_args()))
    assert len(os.listdir("/proc/self/fd")) == before + 1
    assert os.listdir(tmp_path) == []
    assert [trace.args[row] for row in range(3)] == [{"at": 0}, {"at": 1}, {"at": 2}]
    del trace
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_refused_stream_leaves_nothing_open(copies_on_disk) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TraceFormatError):
        tv.load(io.BytesIO(b"neither this nor that"))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_stream_without_end_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(stored, "MAX_COPY_BYTES", 8 << 20)

    class Endless:
        def read(self, size: int) -> bytes:
            return bytes(size)

    with pytest.raises(TraceFormatError, match=r"too long.*Save it to a file"):
        tv.load(Endless())


def test_a_full_disk_is_reported_with_the_remedy(copies_on_disk, monkeypatch) -> None:
    class Full(io.BytesIO):
        def write(self, block: bytes) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: Full())
    with pytest.raises(TraceFormatError, match=r"No space left on device.*TMPDIR"):
        tv.load(io.BytesIO(TRACE))


def test_hostile_sizes_are_refused_in_memory_as_on_disk(monkeypatch) -> None:
    monkeypatch.setattr("torchtrt_viz.formats.io.decompress.FREE_EXPANSION", 1 << 20)
    for bomb in (gzip.compress(bytes(64 << 20)), zstandard.compress(bytes(64 << 20))):
        with pytest.raises(TraceFormatError):
            tv.load(bomb)
        with pytest.raises(TraceFormatError, match="without bound"):
            tv.load(bomb, format="kineto")


def zip_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


RANKS = {f"rank{rank}.json": trace_json(simple_events(), rank=rank) for rank in range(3)}


@pytest.mark.parametrize("pack", [zip_of, tar_gz])
@pytest.mark.parametrize("given", ["bytes", "object", "URL"])
@pytest.mark.parametrize("on_disk", [False, True])
def test_an_archive_of_ranks_is_a_session(pack, given: str, on_disk: bool, remote, monkeypatch) -> None:
    if on_disk:
        monkeypatch.setattr(stored, "IN_MEMORY_BYTES", 0)
    data = pack(RANKS)
    remote.pipe("/x/ranks", data)
    session = tv.load({"bytes": data, "object": io.BytesIO(data), "URL": "memory://x/ranks"}[given])
    assert isinstance(session, tv.Session)
    assert session.ranks["rank"].tolist() == [0, 1, 2]
    remote.rm("/x/ranks")  # it was one file: its copy is kept
    assert session[2].spans["name"].tolist() == NAMES
    assert session.meta["warnings"] == []


def test_an_archive_of_one_trace_is_a_trace() -> None:
    trace = tv.load(zip_of({"a/trace.json": with_args(), "notes.txt": b"nothing"}))
    assert isinstance(trace, tv.Trace)
    assert trace.meta["sources"] == ["<bytes>!a/trace.json"]
    assert trace.args[2] == {"at": 2}


def test_a_list_mixes_kinds(tmp_path: Path, remote) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(RANKS["rank0.json"])
    remote.pipe("/x/rank1.json", RANKS["rank1.json"])
    given = [
        path,
        "memory://x/rank1.json",
        RANKS["rank2.json"],
        io.BytesIO(trace_json(simple_events(), rank=3)),
    ]
    session = tv.load(given)
    assert session.ranks["rank"].tolist() == [0, 1, 2, 3]
    assert session.meta["sources"] == [str(path), "memory://x/rank1.json", "<bytes 3>", "<file 4>"]
    assert [session[rank].spans["name"].tolist() for rank in range(4)] == [NAMES] * 4


def test_file_objects_of_one_name_are_told_apart() -> None:
    graph, profile_ = (SAMPLES / "trex" / f"region_000.{part}.json" for part in ("graph", "profile"))
    one, other = io.BytesIO(graph.read_bytes()), io.BytesIO(profile_.read_bytes())
    one.name = other.name = "engine"
    trace = tv.load([one, other])
    assert trace.meta["sources"] == ["engine", "engine #2"]
    assert len(trace.spans) == len(tv.load([graph, profile_]).spans) > 0


def test_a_folder_behind_a_url_is_a_session(remote) -> None:
    for name, data in RANKS.items():
        remote.pipe(f"/run/{name}", data)
    remote.pipe("/run/.hidden/rank9.json", RANKS["rank0.json"])
    remote.pipe("/run/notes.txt", b"nothing")
    session = tv.load("memory://run")
    assert session.ranks["rank"].tolist() == [0, 1, 2]
    assert session.ranks["path"].tolist() == [f"memory://run/{name}" for name in RANKS]
    assert session.meta["other_files"] == ["memory://run/notes.txt"]
    assert session[1].spans["name"].tolist() == NAMES
    assert session.operators(per_rank=True)["rank"].nunique() == 3


def test_the_layout_of_this_package_is_read_behind_a_url(remote, tmp_path: Path) -> None:
    from torchtrt_viz.formats.session.manifest import CycleRecord, Manifest, RankRecord

    def archive(rank: int) -> bytes:
        meta = (
            f'{{"format": "torchtrt_viz.rank/1", "session_id": "s1", "rank": {rank}, "cycle": 0, "pid": 5}}'
        )
        return tar_gz({"rank.json": meta.encode(), "raw/trace.json": trace_json(simple_events(), rank=rank)})

    names = ["rank-00000/cycle-00000.tar.gz", "rank-00001/cycle-00000.tar.gz", "../rank-00002/x.tar.gz"]
    records = [
        RankRecord(rank, state="collected", role="prefill", cycles=[CycleRecord(0, "published", name)])
        for rank, name in enumerate(names)
    ]
    remote.pipe("/runs/s1/manifest.json", Manifest("s1", "complete", ranks=records).to_json())
    remote.pipe(f"/runs/s1/{names[0]}", archive(0))
    session = tv.load("memory://runs/s1")
    table = session.ranks
    assert table[["rank", "role", "session"]].values.tolist() == [
        [rank, "prefill", "s1"] for rank in range(3)
    ]
    assert table["state"].tolist()[1:] == ["missing", "missing"]
    assert "outside" in table["error"][2]
    assert session[0].spans["name"].tolist() == NAMES
    assert table["path"][1] == "memory://runs/s1/rank-00001/cycle-00000.tar.gz"


def test_a_saved_capture_is_one_trace_behind_a_url(remote) -> None:
    folder = SAMPLES / "demo_capture"
    for path in folder.iterdir():
        remote.pipe(f"/c/{path.name}", path.read_bytes())
    here, there = tv.load(folder), tv.load("memory://c")
    assert there.meta["format"] == "capture"
    assert there.spans.equals(here.spans)
    assert there.meta["base_ns"] == here.meta["base_ns"]
    named = here.spans["kind"].eq("operator").to_numpy().nonzero()[0][:20].tolist()
    remote.rm("/c", recursive=True)
    assert [there.args[row] for row in named] == [here.args[row] for row in named]


def test_an_etdump_behind_a_url_finds_its_sidecar_and_its_etrecord(remote) -> None:
    folder = SAMPLES / "demo_capture"
    for name in ("demo.etdp", "demo.etdp.json", "demo.etrecord"):
        remote.pipe(f"/d/{name}", (folder / name).read_bytes())
    here = tv.load(folder / "demo.etdp", etrecord=folder / "demo.etrecord")
    for there in (
        tv.load("memory://d"),
        tv.load("memory://d/demo.etdp", etrecord="memory://d/demo.etrecord"),
        tv.load("memory://d/demo.etdp", etrecord=(folder / "demo.etrecord").read_bytes()),
    ):
        assert there.meta["base_ns"] == here.meta["base_ns"]
        assert len(there.meta["etrecord"]["events"]) == len(here.meta["etrecord"]["events"]) > 0
        assert there.spans.equals(here.spans)


def test_file_urls_are_paths(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)  # not even that is needed
    path = tmp_path / "a b.json"
    path.write_bytes(TRACE)
    for url in (f"file://{path}", path.as_uri(), f"file://localhost{path}"):
        assert tv.load(url).meta["sources"] == [str(path)]
    with pytest.raises(TraceFormatError, match="no such file"):
        tv.load(f"file://{path}.gone")


def test_a_chain_of_file_systems_is_a_url(remote) -> None:
    remote.pipe("/x/ranks.zip", zip_of(RANKS))
    assert tv.load("zip://rank1.json::memory://x/ranks.zip").spans["name"].tolist() == NAMES
    assert tv.load("zip::memory://x/ranks.zip").ranks["rank"].tolist() == [0, 1, 2]


def test_a_path_that_looks_like_a_url_is_a_path(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("memory:").mkdir()
    Path("memory:/a.json").write_bytes(TRACE)
    assert tv.load("memory://a.json").spans["name"].tolist() == NAMES


def test_missing_urls_and_packages_say_what_to_do(remote, monkeypatch) -> None:
    with pytest.raises(TraceFormatError, match=r"memory://nowhere/x.json: no such file.*Check the URL"):
        tv.load("memory://nowhere/x.json")
    with pytest.raises(TraceFormatError, match="Protocol not known: nosuch"):
        tv.load("nosuch://a/b")
    from fsspec.registry import known_implementations

    entry = {"class": "not_installed_fs.FileSystem", "err": "Install not_installed_fs to reach it"}
    monkeypatch.setitem(known_implementations, "faraway", entry)
    with pytest.raises(MissingDependencyError, match=r"faraway://.*pip install not_installed_fs"):
        tv.load("faraway://bucket/x")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingDependencyError, match=r"fsspec.*pip install 'torchtrt-viz\[remote\]'"):
        tv.load("s3://bucket/x")


def test_an_error_of_the_protocol_names_the_url_and_keeps_its_secrets(remote, monkeypatch) -> None:
    def refuse(self, path, **options):
        raise RuntimeError(f"401 for https://user:pw@host/{path}?X-Signature=abc")

    monkeypatch.setattr(type(remote), "info", refuse)
    with pytest.raises(TraceFormatError, match=r"cannot be read.*401.*credentials") as caught:
        tv.load("memory://user:pw@bucket/x.json?X-Signature=abc")
    assert caught.value.path == "memory://bucket/x.json"
    for secret in ("pw", "X-Signature", "abc"):
        assert secret not in str(caught.value)


def test_a_connection_that_breaks_is_an_error_about_the_url(remote, monkeypatch) -> None:
    remote.pipe("/x/a.json", TRACE)

    class Broken(io.BytesIO):
        def read(self, size: int = -1) -> bytes:
            raise TimeoutError("no answer")

    monkeypatch.setattr(type(remote), "_open", lambda self, path, mode="rb", **options: Broken())
    with pytest.raises(TraceFormatError, match=r"memory://x/a.json: .*TimeoutError: no answer"):
        tv.load("memory://x/a.json")


def test_a_folder_with_too_many_files_is_refused(remote, monkeypatch) -> None:
    monkeypatch.setattr("torchtrt_viz.loading.walk.MAX_FILES", 2)
    for name, data in RANKS.items():
        remote.pipe(f"/run/{name}", data)
    with pytest.raises(TraceFormatError, match="too many files"):
        tv.load("memory://run")


def test_looking_at_remote_files_does_not_fetch_them(remote, monkeypatch) -> None:
    monkeypatch.setattr("torchtrt_viz.loading.identify.IN_MEMORY_BYTES", 0)
    monkeypatch.setattr("torchtrt_viz.loading.identify.CHECK_BYTES", 0)
    fetched = []
    copy_of = stored.copy_of
    monkeypatch.setattr(
        "torchtrt_viz.formats.io.remote.copy_of",
        lambda name, *rest, **options: fetched.append(name) or copy_of(name, *rest, **options),
    )
    for name, data in RANKS.items():
        remote.pipe(f"/run/{name}", data)
    session = tv.load("memory://run")
    assert fetched == []
    trace = session[1]
    assert fetched == ["memory://run/rank1.json"]
    remote.rm("/run", recursive=True)
    assert trace.args[0] == {}


def test_sources_travel_to_other_processes(remote, copies_on_disk) -> None:
    remote.pipe("/x/a.json", TRACE)
    fetched = tv.load("memory://x/a.json")
    assert fetched.spans["name"].tolist() == NAMES
    held = inputs.open_inputs("memory://x/a.json").files[0].source
    assert held.on_disk
    assert pickle.loads(pickle.dumps(held)).name == "memory://x/a.json"
    for given in (io.BytesIO(TRACE), TRACE, "memory://x/a.json"):
        source = inputs.open_inputs(given).files[0].source
        assert pickle.loads(pickle.dumps(source)).read() == TRACE


def test_progress_is_reported_while_a_stream_is_copied(copies_on_disk) -> None:
    seen = []
    tv.load(io.BytesIO(TRACE), progress=lambda done, total: seen.append(done))
    assert seen
    assert max(seen) == len(TRACE)


def test_a_copy_is_read_by_several_at_once(copies_on_disk) -> None:
    source = inputs.open_inputs(io.BytesIO(TRACE)).files[0].source
    assert isinstance(source, Source)
    with source.open() as one, source.open() as other:
        assert one.read(10) == other.read(10) == TRACE[:10]
