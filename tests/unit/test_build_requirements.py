"""What a build asks for: executorch where the capture side is built, and nothing of torch anywhere."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    pytest.importorskip("scikit_build_core")
    (folder,) = PYPROJECT["build-system"]["backend-path"]
    path = ROOT / folder / f"{PYPROJECT['build-system']['build-backend']}.py"
    spec = importlib.util.spec_from_file_location("build_backend", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # as pip calls a backend
    monkeypatch.delenv("SKBUILD_CMAKE_DEFINE", raising=False)


def executorch(required: list[str]) -> list[str]:
    return [one for one in required if one.startswith("executorch")]


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_a_build_for_captures_asks_for_the_executorch_of_the_extra(backend: ModuleType, kind: str) -> None:
    extra = executorch(PYPROJECT["project"]["optional-dependencies"]["capture"])
    required = getattr(backend, f"get_requires_for_build_{kind}")
    assert executorch(required(None)) == executorch(required({})) == extra
    assert len(extra) == 1


@pytest.mark.parametrize("value", ["OFF", "off", "0", "False", ["ON", "OFF"]])
def test_a_build_without_captures_asks_for_none(backend: ModuleType, value: Any) -> None:
    settings = {"cmake.define.TORCHTRT_VIZ_CAPTURE": value}
    assert executorch(backend.get_requires_for_build_wheel(settings)) == []
    assert executorch(backend.get_requires_for_build_editable(settings)) == []


def test_the_environment_says_it_too(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKBUILD_CMAKE_DEFINE", "TORCHTRT_VIZ_WERROR=ON;TORCHTRT_VIZ_CAPTURE=OFF")
    assert executorch(backend.get_requires_for_build_wheel()) == []
    on = {"cmake.define.TORCHTRT_VIZ_CAPTURE": "ON"}
    assert len(executorch(backend.get_requires_for_build_wheel(on))) == 1


def test_no_build_asks_for_torch() -> None:
    required = PYPROJECT["build-system"]["requires"]
    assert not [one for one in required if one.startswith(("torch", "executorch"))]
