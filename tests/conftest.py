"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def _shared(name: str) -> Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"the folder of reference files ../shared/{name} is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real files of other people's runs."""
    return _shared("corpus")


@pytest.fixture(scope="session")
def cases() -> Path:
    """Small hard inputs, with the expected result of each."""
    return _shared("cases")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
