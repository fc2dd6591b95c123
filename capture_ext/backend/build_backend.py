"""scikit-build-core, which asks for executorch only where the capture side is built.

``pip install . -C cmake.define.TORCHTRT_VIZ_CAPTURE=OFF`` builds the loaders and analyses alone. What
pyproject.toml requires would be downloaded for them too.
"""

from __future__ import annotations

import os
from typing import Any

from scikit_build_core import build as backend
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

EXECUTORCH = "executorch>=1.5,<1.6"  # its headers and libraries; the same range as in the extra "capture"
OPTION = "TORCHTRT_VIZ_CAPTURE"
OFF = ("OFF", "0", "FALSE", "NO", "N")

Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return what a wheel's build needs beside pyproject.toml's list."""
    return [*backend.get_requires_for_build_wheel(config_settings), *_runtimes(config_settings)]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Return what an editable build needs beside pyproject.toml's list."""
    return [*backend.get_requires_for_build_editable(config_settings), *_runtimes(config_settings)]


def _runtimes(config_settings: Settings) -> list[str]:
    """Read the option from where scikit-build-core does: pip's -C first, then SKBUILD_CMAKE_DEFINE."""
    defines = dict(
        define.split("=", 1)
        for define in os.environ.get("SKBUILD_CMAKE_DEFINE", "").split(";")
        if "=" in define
    )
    settings = config_settings or {}
    value = settings.get(f"cmake.define.{OPTION}", settings.get(f"skbuild.cmake.define.{OPTION}"))
    if value is None:
        value = defines.get(OPTION, "ON")
    if isinstance(value, list):
        value = value[-1]
    return [] if str(value).strip().upper() in OFF else [EXECUTORCH]
