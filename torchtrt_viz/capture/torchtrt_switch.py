"""Engines of Torch-TensorRT's own runtime, switched on for a capture through its global profiling operators.

Torch-TensorRT defines ``torch.ops.tensorrt.set_profile_execution`` and its companions where its version has
them; its engines then write trace files. Where ours are defined in their place (``load_torch_ops``), there is
nothing to do: the capture reaches our engines directly.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from torchtrt_viz.runtime.modules import loaded_torch
from torchtrt_viz.runtime.torchtrt_takeover import theirs

__all__ = ["TorchTensorRTSwitch"]

_NAMES = ("path_prefix", "format", "execution")


class TorchTensorRTSwitch:
    """The switch of Torch-TensorRT, turned on while a capture runs.

    Parameters
    ----------
    folder
        Where its engines write their files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: dict[str, Any] | None = None

    @staticmethod
    def operators() -> Any | None:
        """Torch-TensorRT's operators; None where it is not loaded, is too old, or they are ours."""
        torch = loaded_torch()
        if torch is None:
            return None
        found = torch.ops.tensorrt
        if not all(hasattr(found, f"{verb}_profile_{name}") for verb in ("set", "get") for name in _NAMES):
            return None
        ours = torch.ops.torchtrt_viz
        if hasattr(ours, "profile_ops_are_ours") and ours.profile_ops_are_ours():
            return None
        return found

    @staticmethod
    def _call(name: str, *arguments: Any) -> Any:
        return theirs(loaded_torch(), name)(*arguments)

    def start(self, problems: list[str]) -> None:
        """Turn the switch on; what cannot be reached is added to ``problems``."""
        operators = self.operators()
        if operators is None:
            if "torch_tensorrt" in sys.modules and not _ours_are_loaded():
                problems.append(
                    "engines of Torch-TensorRT are not recorded: this version has no global profiling "
                    "switch; torchtrt_viz.attach(module) reaches those whose execution context Python can see"
                )
            return
        self._before = {name: self._call(f"get_profile_{name}") for name in _NAMES}
        self._folder.mkdir(exist_ok=True)
        self._call("set_profile_path_prefix", str(self._folder))
        self._call("set_profile_format", "perfetto")
        self._call("set_profile_execution", True)

    def stop(self) -> list[Path]:
        """Put the switch back; return the files that were written."""
        before, self._before = self._before, None
        operators = self.operators()
        if before is None or operators is None:
            return []
        self._call("set_profile_execution", bool(before["execution"]))
        self._call("set_profile_format", before["format"])
        if before["path_prefix"]:
            self._call("set_profile_path_prefix", before["path_prefix"])
        return sorted(path for path in self._folder.iterdir() if path.is_file())


def _ours_are_loaded() -> bool:
    torch = loaded_torch()
    return torch is not None and hasattr(torch.ops.torchtrt_viz, "profile_ops_are_ours")
