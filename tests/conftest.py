"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from shared_files import ABSENT, VARIABLE, shared_folder

ROOT = Path(__file__).resolve().parents[1]

# Neither a slow example nor slow generation fails a test: the machine may be busy.
settings.register_profile(
    "loop", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("loop"), max_examples=2_000)
settings.load_profile("loop")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real files of other people's runs."""
    return shared_folder("corpus")


@pytest.fixture(scope="session")
def cases() -> Path:
    """Small hard inputs, with the expected result of each."""
    return shared_folder("cases")


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was not tested for want of the reference files."""
    count = sum(ABSENT in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if count:
        terminalreporter.write_line(
            f"{count} tests were skipped for want of ../shared; {VARIABLE} may say where it is", yellow=True
        )
