"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def _away_from_the_checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Python puts the working directory first: in the checkout, child processes would import the source
    tree, which has no compiled modules, instead of the installed package.
    """  # noqa: D205
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)
