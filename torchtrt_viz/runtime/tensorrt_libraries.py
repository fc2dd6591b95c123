"""Where TensorRT's and CUDA's runtime libraries lie when they were installed as Python packages.

The TensorRT engine opens them by name, which finds those of the system and those that are on
``LD_LIBRARY_PATH``. Packages of Python put them beside their modules: the two environment variables tell the
engine.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

__all__ = ["CUDART", "NVINFER", "find_libraries", "point_to_libraries"]

NVINFER = "TORCHTRT_VIZ_NVINFER"
CUDART = "TORCHTRT_VIZ_CUDART"

#: variable -> (package, folder in it, pattern of the file)
_PLACES = {
    NVINFER: (("tensorrt_libs", ".", "libnvinfer.so.[0-9]*"),),
    CUDART: (
        ("nvidia", "cu[0-9]*/lib", "libcudart.so.[0-9]*"),
        ("nvidia", "cuda_runtime/lib", "libcudart.so.[0-9]*"),
    ),
}


def find_libraries() -> dict[str, Path]:
    """Return the libraries that packages of this Python hold, by environment variable."""
    found: dict[str, Path] = {}
    for variable, places in _PLACES.items():
        for package, folder, pattern in places:
            spec = find_spec(package)
            for root in (spec.submodule_search_locations or []) if spec is not None else []:
                files = sorted(Path(root).glob(pattern if folder == "." else f"{folder}/{pattern}"))
                if files and variable not in found:
                    found[variable] = files[-1]
    return found


def point_to_libraries() -> dict[str, Path]:
    """Set the variables that are not set, unless ``LD_LIBRARY_PATH`` leads to such a library.

    Nothing is loaded: that happens with the first plan.

    Returns
    -------
    dict
        What was set.
    """
    done: dict[str, Path] = {}
    for variable, path in find_libraries().items():
        if variable in os.environ or _on_library_path(path.name.split(".so")[0] + ".so*"):
            continue
        os.environ[variable] = str(path)
        done[variable] = path
    return done


def _on_library_path(pattern: str) -> bool:
    folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return any(any(Path(folder).glob(pattern)) for folder in folders)
