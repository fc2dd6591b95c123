"""Other tools that compute what this package computes: what they said about the reference files.

Their values are kept in ``tests/integration/peer_values``, one file a tool, with its version, written by the
script ``tests/support/peer_TOOL.py``, whose head says how. The tools need an environment of their own; with
its interpreter in the environment variable ``TORCHTRT_VIZ_PEERS_PYTHON`` the slow tests ask them again.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["VARIABLE", "ask", "recorded"]

VARIABLE = "TORCHTRT_VIZ_PEERS_PYTHON"

_HERE = Path(__file__).resolve().parent


def recorded(tool: str) -> dict[str, Any]:
    """Return the values kept of a tool: its version, and under ``files`` those of each file."""
    path = _HERE.parent / "integration" / "peer_values" / f"{tool}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def ask(tool: str, corpus: Path, module: str) -> dict[str, Any]:
    """Return what the tool itself says now; skips where there is no interpreter that has it."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} names no interpreter that has {module} (see tests/support/peer_{tool}.py)")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    probe = subprocess.run(
        [python, "-c", f"import {module}"], capture_output=True, text=True, env=environment
    )
    if probe.returncode:
        pytest.skip(f"{python} ({VARIABLE}) cannot import {module}: {probe.stderr.strip().splitlines()[-1]}")
    script = _HERE / f"peer_{tool}.py"
    done = subprocess.run(
        [python, str(script), str(corpus)], check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
