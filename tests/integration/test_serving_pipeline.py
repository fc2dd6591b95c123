"""From an export to a verified archive: what is in it, and what happens when anything on the way fails."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest
from rank_traces import event, simple_events, trace_json
from staged_jobs import SESSION, fresh_status, quick, stage

import torchtrt_viz as tv
from torchtrt_viz.serving import recover
from torchtrt_viz.serving.artifacts.pipeline import STAGES, ArtifactPipeline
from torchtrt_viz.serving.artifacts.space import resident_bytes

SUPPORT = Path(__file__).parents[1] / "support"
#: where child processes find the package that is being tested, installed or not
PACKAGE = Path(tv.__file__).parents[1]


@pytest.fixture
def settings(tmp_path):
    return quick(parse_timeout_s=120, spare_staging=(tmp_path / "spare",))


def run(job, settings, on_stage=None):
    """Process one job on a pipeline of its own."""
    pipeline = ArtifactPipeline(settings, on_stage=on_stage)
    pipeline.submit(job, fresh_status(job))
    assert pipeline.wait(60)
    assert pipeline.close(10)
    return pipeline.statuses()[0], pipeline


def members(archive: str | Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


def staged_files(root: Path) -> list[str]:
    return sorted(
        str(p.relative_to(root)) for p in (root / SESSION).rglob("*") if ".staging" in p.parts and p.is_file()
    )


# -- the whole way ---------------------------------------------------------------------------------------


def test_archive_holds_raw_parsed_and_a_true_inventory(tmp_path, settings):
    job = stage(tmp_path, rank=3, cycle=2)
    raw = job.raw.read_bytes()
    status, _ = run(job, settings)
    assert (status.state, status.error, status.cleanup_error) == ("published", None, None)
    assert status.archive == str(tmp_path / SESSION / "rank-00003" / "cycle-00002.tar.gz")
    assert hashlib.sha256(Path(status.archive).read_bytes()).hexdigest() == status.sha256
    found = members(status.archive)
    assert list(found) == ["rank.json", "operators.csv", "summary.json", "raw/trace.json", "inventory.json"]
    assert found["raw/trace.json"] == raw
    inventory = json.loads(found["inventory.json"])
    assert {f["name"]: (f["bytes"], f["sha256"]) for f in inventory["files"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest())
        for name, data in found.items()
        if name != "inventory.json"
    }
    # nothing of the job is left, nothing else was made
    assert sorted(p.name for p in (tmp_path / SESSION).rglob("*")) == ["cycle-00002.tar.gz", "rank-00003"]


def test_operators_csv_agrees_with_the_events(tmp_path, settings):
    status, _ = run(stage(tmp_path), settings)
    rows = {
        r["name"]: r for r in csv.DictReader(io.StringIO(members(status.archive)["operators.csv"].decode()))
    }
    linear, addmm = rows["aten::linear"], rows["aten::addmm"]
    assert (linear["kind"], linear["domain"], linear["calls"]) == ("operator", "host", "2")
    assert (int(linear["inclusive_ns"]), int(linear["self_ns"])) == (400_000, 100_000)
    assert (int(addmm["inclusive_ns"]), int(addmm["self_ns"])) == (300_000, 300_000)
    assert linear["thread"]
    # what was not collected is empty, never 0
    for column in ("input_shapes", "flops", "allocated_bytes", "freed_bytes", "device_inclusive_ns"):
        assert addmm[column] == ""
    summary = json.loads(members(status.archive)["summary.json"])
    assert set(summary["unavailable"]) == {"input_shapes", "memory", "stacks", "flops", "device"}
    assert summary["host"]["operator_self_ns"] == 400_000
    assert summary["device"]["summed_durations_ns"] is None
    assert [s["dur_ns"] for s in summary["steps"]] == [500_000, 500_000]
    assert summary["identity"]["rank"] == 0
    assert set(next(iter(rows.values()))) == set(summary["columns"])


def test_device_work_is_never_called_host_or_wall_time(tmp_path, settings):
    events = [
        event("aten::mm", 0, 100, "cpu_op", External_id=1),
        event("cudaLaunchKernel", 10, 5, "cuda_runtime", correlation=9),
        # two streams at the same time: 60 + 60 µs of kernels in 80 µs
        {**event("gemm", 200, 60, "kernel", tid=7, correlation=9, device=0, stream=7), "pid": 0},
        {**event("gemm", 220, 60, "kernel", tid=8, correlation=11, device=0, stream=8), "pid": 0},
    ]
    status, _ = run(stage(tmp_path, raw=trace_json(events, rank=0)), settings)
    found = members(status.archive)
    rows = list(csv.DictReader(io.StringIO(found["operators.csv"].decode())))
    kernels = [r for r in rows if r["domain"] == "gpu"]
    assert len(kernels) == 2
    assert all(r["thread"] for r in kernels)
    assert all(r["self_ns"] == "" for r in kernels)
    mm = next(r for r in rows if r["name"] == "aten::mm")
    assert (mm["inclusive_ns"], mm["self_ns"], mm["device_inclusive_ns"]) == ("100000", "95000", "60000")
    device = json.loads(found["summary.json"])["device"]
    assert device == {"calls": 2, "summed_durations_ns": 120_000, "busy_ns": 80_000}


def test_shapes_stacks_memory_and_flops_where_collected(tmp_path, settings):
    events = [
        event("train.py(3): main", 0, 100, "python_function", **{"Python id": 1}),
        event(
            "aten::mm",
            10,
            50,
            "cpu_op",
            **{
                "Input Dims": [[4, 8], [8, 16]],
                "Input type": ["float", "float"],
                "Concrete Inputs": ["", ""],
            },
        ),
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 100,
            "tid": 7,
            "ts": 20,
            "args": {
                "Bytes": 256,
                "Total Allocated": 1256,
                "Total Reserved": 0,
                "Device Type": 0,
                "Device Id": -1,
            },
        },
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 100,
            "tid": 7,
            "ts": 90,
            "args": {
                "Bytes": -56,
                "Total Allocated": 1200,
                "Total Reserved": 0,
                "Device Type": 0,
                "Device Id": -1,
            },
        },
    ]
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_flops"), True)
    status, _ = run(stage(tmp_path, raw=trace_json(events, rank=0), **options), settings)
    found = members(status.archive)
    row = next(
        r for r in csv.DictReader(io.StringIO(found["operators.csv"].decode())) if r["name"] == "aten::mm"
    )
    assert row["input_shapes"] == "[[4,8],[8,16]]"
    assert (row["allocated_bytes"], row["freed_bytes"], row["flops"]) == ("256", "0", str(2 * 4 * 8 * 16))
    lines = dict(line.rsplit(" ", 1) for line in found["stacks.folded"].decode().splitlines())
    assert lines == {"train.py(3): main": "50000", "train.py(3): main;aten::mm": "50000"}
    timeline = list(csv.DictReader(io.StringIO(found["memory_timeline.csv"].decode())))
    assert [(t["device"], t["delta_bytes"], t["operator"]) for t in timeline] == [
        ("cpu", "256", "aten::mm"),
        ("cpu", "-56", ""),
    ]
    memory = json.loads(found["summary.json"])["memory"]["cpu"]
    assert memory["peak_allocated_bytes"] == 1256
    assert (memory["allocations"], memory["releases"]) == (1, 1)


def test_memory_alone_switches_nothing_else_on(tmp_path, settings):
    status, _ = run(stage(tmp_path, profile_memory=True), settings)
    found = members(status.archive)
    assert "stacks.folded" not in found
    assert "memory_timeline.csv" not in found
    assert "needs record_shapes" in json.loads(found["summary.json"])["unavailable"]["memory_timeline"]


def test_operators_csv_is_the_loaders_own_view(corpus, tmp_path, settings):
    import gzip

    file = next((corpus / "ranks" / "ddp2").glob("rank1.1796035957*.gz"))
    raw = gzip.decompress(file.read_bytes())
    job = stage(tmp_path, rank=1, raw=raw, record_shapes=True, with_flops=True)
    status, _ = run(job, settings)
    assert status.state == "published"
    rows = csv.DictReader(io.StringIO(members(status.archive)["operators.csv"].decode()))
    mine: dict[str, int] = {}
    for row in rows:
        if row["kind"] == "operator":
            mine[row["name"]] = mine.get(row["name"], 0) + int(row["self_ns"])
    table = tv.load(file).operators().set_index("name")["self_ns"]
    assert mine == table.to_dict()


# -- the fault table -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "stage_name"),
    [
        (lambda raw: raw.write_bytes(raw.read_bytes()[:-60]), "export"),
        (lambda raw: raw.write_bytes(b""), "export"),
        (lambda raw: raw.unlink(), "export"),
        (
            lambda raw: raw.write_bytes(
                b'{"traceEvents": [{"ph": "X", "name": "a"' + b'\n "traceName": "x" }'
            ),
            "parse",
        ),
        (lambda raw: raw.write_bytes(os.urandom(4096) + b'"traceName": "x" }'), "parse"),
    ],
)
def test_corrupt_recording_fails_keeps_its_files_and_says_where(tmp_path, settings, damage, stage_name):
    job = stage(tmp_path)
    damage(job.raw)
    before = job.raw.read_bytes() if job.raw.exists() else None
    status, _ = run(job, settings)
    assert (status.state, status.stage) == ("failed", stage_name)
    assert status.error
    assert status.archive is None
    assert job.folder.is_dir()
    assert (job.raw.read_bytes() if job.raw.exists() else None) == before
    assert not list((tmp_path / SESSION).glob("rank-*/*"))


def test_archive_that_changes_before_verification_is_not_published(tmp_path, settings):
    job = stage(tmp_path)

    def spoil(stage_name, job):
        if stage_name == "verify":
            data = bytearray(job.unpublished.read_bytes())
            data[len(data) // 2] ^= 0x10
            job.unpublished.write_bytes(bytes(data))

    status, pipeline = run(job, settings, spoil)
    assert (status.state, status.stage) == ("failed", "verify")
    assert "not what was written" in status.error
    assert job.raw.exists()
    assert not job.archive.exists()
    assert not job.unpublished.exists()
    # a retry without the fault makes it
    pipeline._on_stage = lambda stage_name, job: None
    assert len(pipeline.retry()) == 1
    assert pipeline.wait(60)
    assert pipeline.statuses()[0].state == "published"
    assert json.loads(members(job.archive)["rank.json"])["cut_at_stop"] == ["r9"]


def test_recording_that_changes_while_it_is_packed_is_noticed(tmp_path, settings, monkeypatch):
    job = stage(tmp_path)

    def grow(stage_name, job):
        if stage_name == "pack":
            original = os.fstat

            def stale(descriptor):
                found = original(descriptor)
                with job.raw.open("ab") as stream:
                    stream.write(b" ")
                return found

            monkeypatch.setattr("torchtrt_viz.serving.artifacts.pack.os.fstat", stale)

    status, _ = run(job, settings, grow)
    assert (status.state, status.stage) == ("failed", "pack")
    assert "while it was packed" in status.error


def test_recording_that_shrinks_while_it_is_packed_is_noticed(tmp_path, settings, monkeypatch):
    job = stage(tmp_path)
    original = os.fstat

    def cut(stage_name, job):
        if stage_name == "pack":

            def stale(descriptor):
                found = original(descriptor)
                if os.readlink(f"/proc/self/fd/{descriptor}") == str(job.raw):
                    os.truncate(job.raw, found.st_size - 1)
                return found

            monkeypatch.setattr("torchtrt_viz.serving.artifacts.pack.os.fstat", stale)

    status, _ = run(job, settings, cut)
    assert (status.state, status.stage) == ("failed", "pack")
    assert "became shorter while it was packed" in status.error
    assert not job.archive.exists()


@pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar program")
def test_other_programs_read_the_archive(tmp_path, settings):
    events = [event("x" * (i % 97), i, 1, "cpu_op") for i in range(9000)]  # more than one block of 1 MiB
    job = stage(tmp_path, raw=trace_json(events, rank=0))
    raw = job.raw.read_bytes()
    status, _ = run(job, settings)
    assert status.state == "published"
    subprocess.run(["gzip", "-t", str(job.archive)], check=True)
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        ["tar", "xzf", str(job.archive), "-C", str(tmp_path / "out")], capture_output=True, check=True
    )
    assert done.stderr == b""
    assert len(raw) > 1 << 20
    assert (tmp_path / "out/raw/trace.json").read_bytes() == raw


def test_folder_that_becomes_unwritable_keeps_the_recording(tmp_path, settings):
    job = stage(tmp_path)
    (tmp_path / SESSION / "rank-00000").write_text("in the way")
    status, pipeline = run(job, settings)
    assert (status.state, status.stage) == ("failed", "pack")
    assert job.raw.exists()
    (tmp_path / SESSION / "rank-00000").unlink()
    pipeline.retry()
    assert pipeline.wait(60)
    assert pipeline.statuses()[0].state == "published"


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("mount") is None, reason="needs root to mount a small tmpfs"
)
def test_full_disk_keeps_the_recording_and_goes_on_when_there_is_space(tmp_path, settings):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True
    ).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        # incompressible, so that the archive does not fit beside what fills the disk
        events = [event(os.urandom(32).hex(), i, 1, "cpu_op") for i in range(3000)]
        staging = tmp_path / "spare"
        job = stage(disk, raw=trace_json(events, rank=0), staging=staging)
        (disk / "ballast").write_bytes(b"\0" * (960 << 10))
        status, pipeline = run(job, settings)
        assert (status.state, status.stage) == ("failed", "pack")
        assert "No space left" in status.error
        assert job.raw.exists()
        assert not job.unpublished.exists()
        (disk / "ballast").unlink()
        assert [s.rank for s in pipeline.retry()] == [0]
        assert pipeline.wait(60)
        assert pipeline.statuses()[0].state == "published"
        assert len(tv.load(job.archive).spans) == 3000
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_parser_that_is_killed_or_hangs_or_lacks_memory_fails_the_job_alone(tmp_path, settings, monkeypatch):
    main = tmp_path / "main.py"
    monkeypatch.setattr("torchtrt_viz.serving.artifacts.child._MAIN", main)
    for code, timeout, expected in (
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 60, "SIGKILL"),
        ("import time; time.sleep(60)", 1, "given up"),
        ("print('no json')", 60, "failed with status 0"),
        ("raise SystemExit('broken')", 60, "broken"),
    ):
        main.write_text(code)
        job = stage(
            tmp_path,
            cycle=len(list((tmp_path / SESSION).glob(".staging/*"))) if (tmp_path / SESSION).exists() else 0,
        )
        status, _ = run(job, quick(parse_timeout_s=timeout))
        assert (status.state, status.stage) == ("failed", "parse")
        assert expected in status.error
        assert job.raw.exists()


def test_parser_out_of_memory_says_so(tmp_path):
    events = [event(f"op{i % 100}", i, 1, "cpu_op") for i in range(20_000)]
    job = stage(tmp_path, raw=trace_json(events, rank=0))
    status, _ = run(job, quick(parse_memory_bytes=40 << 20))
    assert (status.state, status.stage) == ("failed", "parse")
    assert job.raw.exists()


def test_two_workers_with_one_rank_do_not_overwrite_each_other(tmp_path, settings):
    first, second = stage(tmp_path), stage(tmp_path)
    assert run(first, settings)[0].state == "published"
    digest = hashlib.sha256(first.archive.read_bytes()).hexdigest()
    status, _ = run(second, settings)
    assert (status.state, status.stage) == ("failed", "publish")
    assert "two workers share rank 0" in status.error
    assert second.raw.exists()
    assert hashlib.sha256(first.archive.read_bytes()).hexdigest() == digest


def test_cleanup_failure_is_told_apart_and_retried_alone(tmp_path, settings):
    job = stage(tmp_path)
    stages: list[str] = []
    foreign = job.folder / "raw" / "notes.txt"
    foreign.write_text("somebody's")
    status, pipeline = run(job, settings, lambda name, _: stages.append(name))
    assert status.state == "cleanup_failed"
    assert status.error is None
    assert status.archive == str(job.archive)
    assert "notes.txt" in status.cleanup_error or "not empty" in status.cleanup_error
    assert foreign.read_text() == "somebody's"
    foreign.unlink()
    stages.clear()
    assert len(pipeline.retry()) == 1
    assert pipeline.wait(30)
    assert pipeline.statuses()[0].state == "published"
    assert stages == ["clean", "done"]
    assert not job.folder.exists()


def test_one_failure_does_not_stop_the_next_job(tmp_path, settings):
    bad, good = stage(tmp_path, cycle=0), stage(tmp_path, cycle=1)
    bad.raw.write_bytes(b"{}")
    pipeline = ArtifactPipeline(settings)
    for job in (bad, good):
        pipeline.submit(job, fresh_status(job))
    assert pipeline.close(60)
    assert [s.state for s in pipeline.statuses()] == ["failed", "published"]


# -- kill -9 -------------------------------------------------------------------------------------------------

_VICTIM = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from staged_jobs import fresh_status, stage
from torchtrt_viz.serving.artifacts.pipeline import ArtifactPipeline
from torchtrt_viz.serving.contract.settings import Settings

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

target, where = Path(sys.argv[1]), sys.argv[2]
job = stage(target)
if where == "staged":
    die()
if where == "parsing":      # with the parser running
    import torchtrt_viz.serving.artifacts.child as step
    run = step.subprocess.run
    import threading
    step.subprocess.run = lambda *a, **k: (threading.Timer(0.15, die).start(), run(*a, **k))[1]
if where == "packing":      # in the middle of writing the archive
    import torchtrt_viz.serving.artifacts.pack as pack
    add = pack._add
    pack._add = lambda tar, name, *a: die() if name == "raw/trace.json" else add(tar, name, *a)
if where == "between-names":  # both names of the archive exist
    import torchtrt_viz.serving.artifacts.pack as pack
    link = os.link
    pack.os.link = lambda a, b: (link(a, b), die())
if where == "cleaning":     # some of the staged files are deleted
    unlink = Path.unlink
    count = [0]
    def slow(self, missing_ok=False):
        unlink(self, missing_ok=missing_ok)
        count[0] += 1
        if count[0] == 4:
            die()
    Path.unlink = slow if False else Path.unlink
    import torchtrt_viz.serving.artifacts.staging as staging
    delete = staging.Job.delete
    def partial(self):
        Path.unlink = slow
        delete(self)
    staging.Job.delete = partial
on_stage = lambda name, job: die() if name == where else None
pipeline = ArtifactPipeline(Settings(spare_staging=(), niceness=0), on_stage=on_stage)
pipeline.submit(job, fresh_status(job))
pipeline.wait(60)
print("survived")
"""

KILLED_AT = (
    "staged",
    "queued",
    "parse",
    "parsing",
    "pack",
    "packing",
    "verify",
    "publish",
    "between-names",
    "published",
    "clean",
    "cleaning",
    "done",
)


def test_every_stage_is_a_place_to_be_killed_at():
    assert set(STAGES) <= set(KILLED_AT)


@pytest.mark.parametrize("where", KILLED_AT)
def test_killed_anywhere_a_restart_finishes_the_job(tmp_path, where, settings):
    script = tmp_path / "victim.py"
    script.write_text(textwrap.dedent(_VICTIM).format(paths=[str(PACKAGE), str(SUPPORT)]))
    target = tmp_path / "profiles"
    done = subprocess.run(
        [sys.executable, str(script), str(target), where], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == -signal.SIGKILL, (done.stdout, done.stderr)
    found = recover(target, settings=settings)
    archive = target / SESSION / "rank-00000" / "cycle-00000.tar.gz"
    if where == "done":
        assert found == []
    else:
        assert [(s.state, s.error) for s in found] == [("published", None)]
    held = members(archive)
    assert held["raw/trace.json"] == trace_json(simple_events(), rank=0)
    assert json.loads(held["rank.json"])["cut_at_stop"] == ["r9"]
    # nothing is left over, neither staged files nor half an archive
    left = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert [f for f in left if "lock" not in f] == [
        f"{SESSION}/manifest.json",
        f"{SESSION}/rank-00000/cycle-00000.tar.gz",
    ]
    session = tv.load(target / SESSION)
    assert session.ranks[["rank", "state"]].values.tolist() == [[0, "ok"]]
    manifest = json.loads((target / SESSION / "manifest.json").read_text())
    assert manifest["ranks"][0]["cycles"][0]["archive"] == "rank-00000/cycle-00000.tar.gz"
    assert recover(target, settings=settings) == []


def test_recover_leaves_a_living_process_its_jobs(tmp_path, settings):
    job = stage(tmp_path)
    assert recover(tmp_path, settings=settings) == []
    code = f"""
import sys; sys.path[:0] = {[str(PACKAGE), str(SUPPORT)]!r}
from torchtrt_viz.serving import recover, Settings
print(recover({str(tmp_path)!r}, settings=Settings(spare_staging=())))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
    job.release()
    assert [s.state for s in recover(tmp_path, settings=settings)] == ["published"]


def test_recover_keeps_half_an_export_and_says_what_it_is(tmp_path, settings):
    job = stage(tmp_path)
    whole = job.raw.read_bytes()
    job.raw.unlink()
    job.raw.with_name("trace.json.tmp").write_bytes(whole[:-300])
    job.release()
    (status,) = recover(tmp_path, settings=settings)
    assert (status.state, status.stage) == ("interrupted", "export")
    assert "trace.json.tmp" in status.error
    part = tv.load(job.raw.with_name("trace.json.tmp"))
    assert 0 < len(part.spans) <= 6
    assert part.meta["warnings"]


def test_recover_of_a_job_in_which_nothing_was_recorded(tmp_path, settings):
    job = stage(tmp_path)
    job.raw.unlink()
    job.release()
    (status,) = recover(tmp_path, settings=settings)
    assert status.state == "interrupted"
    assert "nothing of this cycle was exported" in status.error
    assert not job.folder.exists()


def test_recover_of_an_unreadable_job_keeps_it(tmp_path, settings):
    job = stage(tmp_path)
    job.release()
    (job.folder / "job.json").write_text("{")
    (status,) = recover(tmp_path, settings=settings)
    assert status.state == "failed"
    assert "cannot be read" in status.error
    assert job.raw.exists()


def test_recover_never_deletes_outside_of_the_job(tmp_path, settings):
    job = stage(tmp_path)
    job.release()
    precious = tmp_path / "precious.txt"
    precious.write_text("keep")
    document = json.loads((job.folder / "job.json").read_text())
    document["registered"].append("../../../precious.txt")
    (job.folder / "job.json").write_text(json.dumps(document))
    (status,) = recover(tmp_path, settings=settings)
    assert status.state == "failed"
    assert precious.read_text() == "keep"


def test_recover_finds_what_was_staged_on_a_spare_disk(tmp_path, settings):
    root, spare = tmp_path / "profiles", tmp_path / "spare"
    job = stage(root, staging=spare)
    job.release()
    assert [s.state for s in recover(root, settings=settings)] == ["published"]
    assert (root / SESSION / "rank-00000" / "cycle-00000.tar.gz").exists()


def test_many_ranks_on_one_machine_complete_with_bounded_memory(tmp_path):
    """Six pipelines parse two at a time; the slow test has 64."""
    _many(tmp_path, 6, 500)


@pytest.mark.slow
def test_sixty_four_ranks_on_one_machine(tmp_path):
    _many(tmp_path, 64, 5000)


def _many(tmp_path: Path, ranks: int, count: int) -> None:
    import threading

    events = [event(f"op{i % 50}", i, 1, "cpu_op") for i in range(count)]
    raw = trace_json(events, rank=0)
    settings = quick(parallel_parses=2)
    pipelines, most, stop = [], [0], threading.Event()

    def parsing(pid: str) -> bool:
        try:
            return b"child_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            return False

    def children() -> int:
        # parsers only: the test run has other children
        return sum(
            parsing(pid) for t in Path("/proc/self/task").glob("*/children") for pid in t.read_text().split()
        )

    def watch() -> None:
        while not stop.wait(0.02):
            most[0] = max(most[0], children())

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = resident_bytes()
    for rank in range(ranks):
        job = stage(tmp_path, rank=rank, raw=raw)
        pipelines.append(ArtifactPipeline(settings))
        pipelines[-1].submit(job, fresh_status(job))
    assert all(p.wait(280) for p in pipelines)
    stop.set()
    watcher.join()
    assert all(p.statuses()[0].state == "published" for p in pipelines)
    assert 1 <= most[0] <= 2
    assert resident_bytes() - before < 64 << 20
    assert all(p.close(10) for p in pipelines)
    assert len(tv.load(tmp_path / SESSION).ranks) == ranks


def test_a_whole_trace_that_was_not_renamed_is_recovered(tmp_path):
    """The process ended between torch's last byte and its renaming."""
    job = stage(tmp_path)
    job.release()
    job.raw.rename(job.raw.with_name(job.raw.name + ".tmp"))
    assert [s.state for s in recover(tmp_path, settings=quick())] == ["published"]
    cut = stage(tmp_path, cycle=1)
    cut.release()
    data = cut.raw.read_bytes()
    cut.raw.unlink()
    cut.raw.with_name(cut.raw.name + ".tmp").write_bytes(data[: len(data) // 2])
    (status,) = recover(tmp_path, settings=quick())
    assert (status.state, status.stage) == ("interrupted", "export")
    assert cut.raw.with_name(cut.raw.name + ".tmp").exists()
