"""Where the reference files lie: beside the checkout, or where TORCHTRT_VIZ_SHARED says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "TORCHTRT_VIZ_SHARED"
SHARED = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[3] / "shared")
ABSENT = "needs reference files that are not here: ../shared"


def shared_folder(name: str) -> Path:
    """Return a folder of reference files; a test that asks for one that is absent is skipped."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"{ABSENT}/{name}")
    return folder


def shared_file(name: str) -> Path:
    """Return one reference file; a test that asks for one that is absent is skipped."""
    file = SHARED / name
    if not file.exists():
        pytest.skip(f"{ABSENT}/{name}")
    return file
