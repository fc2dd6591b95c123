"""The command line, as a user types it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import torchtrt_viz as tv


def trtprofile(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torchtrt_viz", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_help_names_every_command_and_imports_nothing_heavy():
    from torchtrt_viz.cli import COMMANDS

    done = trtprofile("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert name in done.stdout
        assert trtprofile(name, "--help").returncode == 0
    code = "import sys, torchtrt_viz.cli; assert not {'torch', 'pandas', 'plotly'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_are_one_message_and_status_2(tmp_path: Path):
    junk = tmp_path / "junk.bin"
    junk.write_bytes(b"\x01\x02\x03 no trace")
    for arguments in (["show", junk], ["show", tmp_path / "nothing"], ["export", junk, "--to", "csv"]):
        done = trtprofile(*arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("trtprofile: ")
        assert "Traceback" not in done.stderr
        assert str(arguments[1]) in done.stderr


@pytest.mark.parametrize("command", ["export", "report", "session report"])
def test_a_place_that_cannot_be_written_is_a_message_with_a_remedy(
    command: str, corpus: Path, tmp_path: Path
):
    source = corpus / "kineto" / "a100_triton_cuda_driver.json.gz"
    arguments = {
        "export": ("export", source, "--to", "html", "--force"),
        "report": ("report", source, "--force"),
        "session report": ("report", corpus / "ranks" / "pd2x2", "--force"),
    }[command]
    (tmp_path / "taken.html").mkdir()
    for target, said in (
        (tmp_path / "no" / "x.html", "its folder does not exist. Make it, or choose another place"),
        (tmp_path / "taken.html", "cannot be written"),
    ):
        done = trtprofile(*arguments, "-o", target)
        assert done.returncode == 2, done.stderr
        assert str(target) in done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken.html"]


def test_doctor_says_what_works():
    pytest.importorskip("executorch")
    done = trtprofile("doctor", "--json")
    (table,) = json.loads(done.stdout)["tables"]
    names = [column["name"] for column in table["columns"]]
    found = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    findings = {finding["name"]: finding for finding in found}
    assert done.returncode == 0, done.stdout
    assert findings["native kineto"]["state"] == "ok"
    assert "TensorRTBackend" in findings["native capture"]["detail"]
    assert findings["engines"]["detail"].startswith("compiled in: host")
    assert findings["torch.ops.tensorrt"]["detail"].startswith("set_profile_* is defined by ")
    assert [*findings].index("plans") > [*findings].index("torch")
    for finding in findings.values():
        assert finding["state"] == "ok" or (finding["cost"] and finding["remedy"])


@pytest.mark.parametrize("arguments", [["show"], ["export", "--to", "html", "-o", "-"]])
def test_a_reader_that_has_gone_ends_a_command_quietly(arguments: list[str], root: Path):
    command, *options = arguments
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "torchtrt_viz", command, root / "sample_traces/eager.pt.trace.json", *options],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_stream_of_another_encoding_gets_near_characters(encoding: str, root: Path):
    done = subprocess.run(
        [sys.executable, "-m", "torchtrt_viz", "show", root / "sample_traces/eager.pt.trace.json"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (" us " if encoding == "ascii" else " µs ") in done.stdout.decode(encoding)


def test_show_prints_tables_of_a_real_trace(corpus: Path):
    done = trtprofile("show", corpus / "kineto" / "a100_triton_cuda_driver.json.gz")
    assert done.returncode == 0, done.stderr
    for part in ("kernels", "operators", "host_gpu", "1. Which TensorRT"):
        assert part in done.stdout


def test_report_of_a_session_of_ranks(corpus: Path, tmp_path: Path):
    target = tmp_path / "out.html"
    done = trtprofile("report", corpus / "ranks" / "ddp2", "-o", target)
    assert done.returncode == 0, done.stderr
    assert "The other ranks waited" in done.stdout
    assert "for rank 1" in done.stdout
    assert "All 4 recordings are here and whole." in target.read_text()
    assert trtprofile("report", corpus / "ranks" / "ddp2", "-o", target).returncode == 1, "not overwritten"
    damaged = trtprofile("report", corpus / "ranks" / "broken", "-o", target, "--force", "--timelines", "0")
    assert damaged.returncode == 0
    assert "damaged: empty.pt.trace.json.gz: empty file" in damaged.stderr
    assert "3 of 4 recordings are not whole" in target.read_text()
    single = trtprofile("report", corpus / "ranks" / "tp4", "-o", target, "--force", "--rank", "9")
    assert single.returncode == 2
    assert "ranks of the session: 0, 1, 2, 3" in single.stderr


@pytest.mark.parametrize("to", ["csv", "parquet", "xlsx", "markdown", "html", "perfetto"])
def test_export_writes_every_format_and_overwrites_only_when_told(to: str, corpus: Path, tmp_path: Path):
    source = corpus / "kineto" / "a100_triton_cuda_driver.json.gz"
    out = tmp_path / "out"
    target = out.with_suffix(
        {
            "csv": ".csv",
            "parquet": ".parquet",
            "xlsx": ".xlsx",
            "markdown": ".md",
            "html": ".html",
            "perfetto": ".pftrace",
        }[to]
    )
    assert trtprofile("export", source, "--to", to, "-o", target).returncode == 0
    first = target.read_bytes()
    assert first
    again = trtprofile("export", source, "--to", to, "-o", target)
    assert again.returncode == 1
    assert "--force" in again.stderr
    assert target.read_bytes() == first
    assert trtprofile("export", source, "--to", to, "-o", target, "--force").returncode == 0
    if to == "perfetto":
        import torchtrt_viz as tv

        work = tv.load(source).spans.query("domain == 'gpu'")
        back = tv.load(target).spans.query("domain == 'gpu'")
        assert len(back) == len(work) > 0
        assert back["dur_ns"].sum() == work["dur_ns"].sum()


def test_demo_writes_everything_and_answers(tmp_path: Path):
    pytest.importorskip("executorch")
    import torchtrt_viz as tv

    done = trtprofile("demo", "-o", tmp_path / "demo", "--runs", 3)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "demo"
    for part in (
        "outputs equal eager PyTorch",
        "torchtrt.enqueue_host",
        "XnnpackBackend",
        "6. Which exported graph regions",
    ):
        assert part in done.stdout
    with (folder / "operators.csv").open() as stream:
        assert len(list(csv.reader(stream))) > 3
    assert (folder / "report.html").read_text().startswith("<!")
    spans = tv.load(folder / "capture" / "demo.etdp").spans
    calls = int((spans["name"] == "torchtrt.delegate").sum())
    assert calls == 2 * 3
    for phase in (
        "input_binding",
        "shape_inference",
        "output_binding",
        "enqueue_host",
        "output_staging",
        "synchronize",
    ):
        assert int((spans["name"] == f"torchtrt.{phase}").sum()) == calls
    # a capture equals itself
    same = trtprofile("compare", folder / "capture", folder / "capture", "--fail-on", "5%")
    assert same.returncode == 0
    assert "slower" not in same.stdout

    # and the program runs under `run`, with its capture kept
    kept = tmp_path / "kept"
    done = trtprofile("run", "--json", "--level", "phases", "--runs", 2, "-o", kept, folder / "demo.pte")
    assert done.returncode == 0, done.stderr
    tables = {table["name"]: table for table in json.loads(done.stdout)["tables"]}
    phases = eval(tables["phases"]["expression"], {"tv": tv})
    assert phases[phases["phase"] == "torchtrt.enqueue_host"]["calls"].tolist() == [2, 2]  # engines, runs
    refused = trtprofile("run", "-o", kept, folder / "demo.pte")
    assert refused.returncode == 1
    assert "--force" in refused.stderr


def test_compare_says_what_it_could_not_compare(cases: Path, root: Path, tmp_path: Path):
    folder = cases / "outside" / "compare_sees_nothing"
    base, slow = folder / "nsys_base.json", folder / "nsys_slow.json"
    worse = trtprofile("compare", base, slow, "--fail-on", "5%")
    assert worse.returncode == 1
    assert "slower" in worse.stdout
    assert "100 % of the measured host time and 100 % of the measured GPU time" in worse.stdout
    assert "not certain: 3 slower by 5 % or more" in worse.stdout
    assert trtprofile("compare", slow, base, "--fail-on", "5%").returncode == 0
    assert trtprofile("compare", base, base, "--fail-on", "5%").returncode == 0

    other = trtprofile("compare", base, root / "sample_traces" / "eager.pt.trace.json")
    assert other.returncode == 4
    assert "the programs are different: nothing of one run is in the other" in other.stderr

    once, longer = tmp_path / "one.json", tmp_path / "two.json"
    call = {"ph": "X", "name": "f", "cat": "cpu_op", "ts": 0, "dur": 5, "pid": 1, "tid": 1}
    once.write_text(json.dumps({"traceEvents": [call]}))
    longer.write_text(json.dumps({"traceEvents": [{**call, "dur": 50}]}))
    few = trtprofile("compare", once, longer, "--fail-on", "5%")
    assert few.returncode == 3
    assert "nothing comparable" in few.stderr
    assert "Exit status" in trtprofile("compare", "--help").stdout


def _steps(path: Path, kernel: str, took: int, steps: int = 6) -> Path:
    """Write a trace of steps, in each of which one operator launches one kernel; times in µs."""
    events: list[dict[str, object]] = []
    for step in range(steps):
        host, at = {"ph": "X", "pid": 1, "tid": 1}, 1000 * step
        launch = {"correlation": step + 1}
        device = {"ph": "X", "pid": 0, "tid": 7, "args": {**launch, "device": 0, "stream": 7}}
        events += [
            {**host, "name": f"ProfilerStep#{step}", "cat": "user_annotation", "ts": at, "dur": 900},
            {**host, "name": "aten::mm", "cat": "cpu_op", "ts": at + 10, "dur": 50 + step % 2},
            {
                **host,
                "name": "cudaLaunchKernel",
                "cat": "cuda_runtime",
                "ts": at + 20,
                "dur": 9,
                "args": launch,
            },
            {**device, "name": kernel, "cat": "kernel", "ts": at + 40, "dur": took + step % 3},
        ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_compare_by_structure(root: Path, tmp_path: Path):
    base = _steps(tmp_path / "cuda.json", "sm90_xmma_gemm_bf16", 200)
    other = _steps(tmp_path / "rocm.json", "Cijk_Alik_Bljk_BBS_BH_MT256x192x64", 400)
    table = tmp_path / "table.csv"
    done = trtprofile("compare", "--structure", base, other, "-o", table)
    assert done.returncode == 0, done.stderr
    assert "sm90_xmma_gemm_bf16 -> Cijk_Alik_Bljk_BBS_BH_MT256x192x64" in done.stdout
    assert "aligned: 100 % of the GPU time and 100 % of the operators' host time" in done.stdout
    (row,) = (row for row in csv.DictReader(table.open()) if row["change"] == "renamed")
    assert row["b_name"] == "Cijk_Alik_Bljk_BBS_BH_MT256x192x64"
    assert float(next(row[name] for name in row if name.startswith("b_gpu [") or "GPU, b" in name)) > 0
    assert "slower" in done.stdout
    worse = trtprofile("compare", "--structure", base, other, "--fail-on", "50%")
    assert worse.returncode == 1
    assert "1 slower by 50 % or more" in worse.stderr
    same = trtprofile("compare", "--structure", base, base, "--fail-on", "1%")
    assert same.returncode == 0
    assert "the same structure, and nothing differs beyond the noise" in same.stdout

    different = trtprofile("compare", "--structure", base, root / "sample_traces" / "eager.pt.trace.json")
    assert different.returncode == 4
    assert "the programs are different" in different.stderr


def test_run_keeps_the_capture_of_a_failing_script(tmp_path: Path):
    script = tmp_path / "work.py"
    script.write_text("import sys, torch\ntorch.ones(4).sum()\nprint(sys.argv[1:])\nsys.exit(3)\n")
    done = trtprofile("run", "--activities", "cpu", script, "--own", "1")
    assert done.returncode == 0, done.stderr
    assert "['--own', '1']" in done.stdout
    assert "aten::sum" in done.stdout
    assert "the capture ends there" in done.stderr


def test_percentages_and_wrong_programs_are_explained(tmp_path: Path):
    assert "no percentage" in trtprofile("compare", "a", "b", "--fail-on", "much").stderr
    wrong = tmp_path / "model.onnx"
    wrong.write_bytes(b"x")
    done = trtprofile("run", wrong)
    assert done.returncode == 2
    assert "a .pte, a .pt2 or a .py" in done.stderr


def test_save(tmp_path: Path):
    source = Path(__file__).resolve().parents[2] / "sample_traces" / "eager.pt.trace.json"
    target = tmp_path / "run"
    done = trtprofile("save", source, "-o", target)
    assert done.returncode == 0, done.stderr
    assert "spans" in done.stdout
    assert tv.load(target).spans.equals(tv.load(source).spans)
    again = trtprofile("save", source, "-o", target)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    document = trtprofile("save", source, "-o", target, "--force", "--json")
    assert json.loads(document.stdout)["files"][0]["path"] == str(target)
