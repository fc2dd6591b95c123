"""A small real network, exported, run and captured: what ``trtprofile demo`` and the samples are made of.

Convolution stem, attention, a gate and a tail. The gate and the tail stand for what an engine does not take:
they are excluded from the ``TensorRTBackend`` regions, so that one program holds two such regions, XNNPACK
calls between them, and operators that the runtime runs itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.aot.program import export_program
from torchtrt_viz.errors import CaptureError, MissingDependencyError, OptionError, OutputError

if TYPE_CHECKING:
    import torch

    from torchtrt_viz.aot.program import ExportedFile
    from torchtrt_viz.captures import Capture
    from torchtrt_viz.trace import Trace

__all__ = ["TOLERANCE", "DemoResult", "demo_module", "export_demo", "run_demo"]

#: Largest difference between the program's outputs and eager PyTorch's that the demo accepts.
TOLERANCE = 1e-4
#: Modules that the regions leave to others.
EXCLUDED = ("module:gate", "module:tail")


@dataclass(frozen=True)
class DemoResult:
    """What the demo made.

    Attributes
    ----------
    trace
        The capture as a trace.
    capture
        The capture itself; ``summary()`` says what it cost.
    exported
        The program, its ETRecord, and what runs where.
    files
        Every file written, by what it is: program, etrecord, etdump, torch, capture.
    max_error
        Largest absolute difference from eager PyTorch, over all outputs.
    """

    trace: Trace
    capture: Capture
    exported: ExportedFile
    files: dict[str, Path]
    max_error: float


def demo_module() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """Return the network, in eval mode with fixed weights, and an input for it."""
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("torch", "capture", "build the demo network") from error
    # slow to import: it needs torch
    from torchtrt_viz.examples.demo_net import DemoNet

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20240517)
        return DemoNet().eval(), (torch.randn(1, 3, 64, 64),)


def export_demo(path: str | PathLike[str], **options: Any) -> ExportedFile:
    """Export the demo network; ``options`` go to :func:`torchtrt_viz.export_program`."""
    module, inputs = demo_module()
    return export_program(module, inputs, path, **{"exclude": EXCLUDED, **options})


def run_demo(
    folder: str | PathLike[str], *, runs: int = 5, level: str = "layers", force: bool = True
) -> DemoResult:
    """Export the demo network, check it against eager PyTorch, capture it, and write the artifacts.

    Parameters
    ----------
    folder
        Where everything goes; made if it is not there.
    runs
        Executions in the captured block.
    level
        Detail of the capture.
    force
        Overwrite the files of an earlier demo.

    Raises
    ------
    CaptureError
        When the program's outputs differ from eager PyTorch's by more than :data:`TOLERANCE`.
    MissingDependencyError
        Without torch or executorch.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise OptionError("runs", runs, "a whole number from 1 on")
    target = Path(fspath(folder))
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError.of(target, error) from error
    module, inputs = demo_module()
    exported = export_demo(target / "demo.pte")

    import torch

    # slow to import: it needs numpy
    from torchtrt_viz.captures import Program, profile

    with torch.no_grad():
        expected = module(*inputs)
    with Program(exported.path) as program:
        max_error = _compare(program(*inputs), expected)
        with profile(level=level) as capture:
            for _ in range(runs):
                outputs = program(*inputs)
        max_error = max(max_error, _compare(outputs, expected))
    saved = capture.save(target / "capture", force=force)
    files = {"program": exported.path, "capture": saved / "capture.json"}
    if exported.etrecord is not None:
        files["etrecord"] = exported.etrecord
    files["etdump"] = saved / "demo.etdp"
    if (saved / "torch.pt.trace.json").is_file():
        files["torch"] = saved / "torch.pt.trace.json"
    return DemoResult(capture.trace, capture, exported, files, max_error)


def _compare(outputs: Any, expected: Any) -> float:
    """Largest difference over the outputs.

    Raises
    ------
    CaptureError
        When it is more than :data:`TOLERANCE`, or outputs of another number or shape came back.
    """
    import torch

    given = outputs if isinstance(outputs, tuple) else (outputs,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    if len(given) != len(wanted) or any(a.shape != b.shape for a, b in zip(given, wanted, strict=True)):
        raise CaptureError(
            "the demo program's outputs have other shapes than eager PyTorch's: a bug, please report it"
        )
    differences = [
        float((have.to(torch.float64) - want.to(torch.float64)).abs().max())
        for have, want in zip(given, wanted, strict=True)
    ]
    # what is not a number is no small difference
    worst = max(differences) if all(value == value for value in differences) else float("nan")
    if not worst <= TOLERANCE:
        raise CaptureError(
            f"the demo program's outputs differ from eager PyTorch's by {worst:.3g}, more than "
            f"{TOLERANCE:g}: a bug, please report it"
        )
    return worst
