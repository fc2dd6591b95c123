"""``trtprofile run``: run a program under the profiler and keep the capture."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchtrt_viz.aot.package import load_package
from torchtrt_viz.capture.columns import CAPTURE_SUMMARY
from torchtrt_viz.capture.options import options_table
from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.output import console, heading, print_frame
from torchtrt_viz.cli.streams import say
from torchtrt_viz.cli.trace_tables import print_trace
from torchtrt_viz.errors import CaptureError, OptionError
from torchtrt_viz.evidence.envelope import Evidence, Sheet
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import trace_sheets
from torchtrt_viz.evidence.sources import source_of, warnings_of

if TYPE_CHECKING:
    from torchtrt_viz.captures import Capture


def _capture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of profile() and the magics, from their shared table."""
    for option in reversed(list(options_table())):
        if option.kind == "flag":
            decorate = click.option(option.flag, option.name, is_flag=True, default=None, help=option.help)
        elif option.kind == "choice":
            decorate = click.option(
                option.flag, option.name, type=click.Choice(option.choices), help=option.help
            )
        else:
            decorate = click.option(option.flag, option.name, metavar=option.metavar, help=option.help)
        function = decorate(function)
    return function


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the capture in this folder.",
)
@click.option(
    "--runs", default=10, show_default=True, type=click.IntRange(1), help="Executions of a package."
)
@click.option(
    "--warmup", default=1, show_default=True, type=click.IntRange(0), help="Executions before the capture."
)
@click.option("--method", help="Method of a .pte; default: forward, or the only one.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An input as .npy, or all of them as .npz (in order of their names) or .pt. Default for a .pte: "
    "random numbers of the recorded shapes.",
)
@click.option("--force", is_flag=True, help="Overwrite an earlier capture in the output folder.")
@json_option
@_capture_options
@click.argument("program", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    output: Path | None,
    runs: int,
    warmup: int,
    method: str | None,
    inputs: tuple[Path, ...],
    force: bool,
    program: Path,
    arguments: tuple[str, ...],
    asked: Asked | None,
    **options: Any,
) -> Evidence | None:
    """Run PROGRAM under the profiler: an ExecuTorch .pte, an AOTInductor .pt2, or a Python script.

    ARGUMENTS are passed to a script. Options of this command come before PROGRAM.
    """
    # slow to import: it needs numpy
    from torchtrt_viz.captures import profile

    given = {name: value for name, value in options.items() if value is not None}
    if output is not None and output.exists() and any(output.iterdir()) and not force:
        raise click.ClickException(f"{output} is not empty; --force overwrites the capture in it")
    if program.suffix in (".pte", ".pt2"):
        if arguments:
            raise click.UsageError(f"a package takes no arguments: {' '.join(arguments)}")
        run = _pte(program, method, inputs) if program.suffix == ".pte" else _pt2(program, inputs)
        for _ in range(warmup):
            run()
        with profile(**given) as capture:
            for _ in range(runs):
                run()
    elif program.suffix == ".py":
        if inputs or method:
            raise click.UsageError("--input and --method are for packages; a script takes ARGUMENTS")
        capture = _script(program, arguments, given)
    else:
        raise OptionError("program", str(program), "a .pte, a .pt2 or a .py")
    if asked is not None:
        return _evidence(capture, output, force, asked)
    _show(capture)
    if output is not None:
        say(f"\nkept in {capture.save(output, force=force)}; load it with torchtrt_viz.load({str(output)!r})")
    return None


def _evidence(capture: Capture, output: Path | None, force: bool, asked: Asked) -> Evidence:
    """Return what the capture holds; what is not kept has no expression that makes it again."""
    trace = capture.trace
    kept = None if output is None else capture.save(output, force=force)
    expression = "" if kept is None else loading([kept])
    found = Evidence("run", asked.arguments, [source_of(trace, expression)])
    found.warnings = warnings_of(trace)
    summary = capture.summary()
    found.tables = [Sheet("capture.summary", summary, CAPTURE_SUMMARY, "The capture")]
    found.tables += trace_sheets(trace, expression)
    if kept is None:
        found.tables = [replace(table, expression=None) for table in found.tables]
        found.sources[0]["expression"] = None
    else:
        found.wrote("capture", kept)
    return found


def _show(capture: Capture) -> None:
    heading("The capture")
    print_frame(capture.summary(), limit=None, columns=("item", "value", "unit", "note"))
    print_trace(capture.trace, limit=12)


def _pte(path: Path, method: str | None, files: tuple[Path, ...]) -> Callable[[], object]:
    # slow to import: it needs numpy
    from torchtrt_viz.captures import Program

    program = Program(path)
    values = _read_inputs(files) if files else _random_inputs(program.describe(method))
    return lambda: program.run(*values, method=method)


def _pt2(path: Path, files: tuple[Path, ...]) -> Callable[[], object]:
    if not files:
        raise OptionError(
            "--input", None, "a package records no shapes of its inputs: give them (.npy, .npz, .pt)"
        )

    runner = load_package(path)
    import torch

    values = [torch.as_tensor(value) for value in _read_inputs(files)]
    return lambda: runner(*values)


def _read_inputs(files: tuple[Path, ...]) -> list[Any]:
    import numpy as np

    values: list[Any] = []
    for path in files:
        try:
            if path.suffix == ".npy":
                values.append(np.load(path, allow_pickle=False))
            elif path.suffix == ".npz":
                with np.load(path, allow_pickle=False) as archive:
                    values.extend(archive[name] for name in archive.files)
            elif path.suffix in (".pt", ".pth"):
                import torch

                loaded = torch.load(path, weights_only=True)
                values.extend(loaded if isinstance(loaded, (list, tuple)) else [loaded])
            else:
                raise OptionError("--input", str(path), "a .npy, .npz or .pt file")
        except (ValueError, OSError, EOFError) as error:
            if isinstance(error, OptionError):
                raise
            raise CaptureError(f"{path}: not readable as input data ({error})") from error
    return values


def _random_inputs(meta: dict[str, Any]) -> list[Any]:
    import numpy as np

    generator = np.random.default_rng(0)
    values: list[Any] = []
    for position, item in enumerate(meta["inputs"]):
        if item["tag"] != "tensor":
            raise OptionError(
                "--input", None, f"input {position} is of type {item['tag']}: give the inputs in files"
            )
        if item["dtype"] == "bfloat16":
            import torch

            values.append(torch.zeros(item["sizes"], dtype=torch.bfloat16))
            continue
        dtype = np.dtype(item["dtype"])
        if dtype.kind == "f":
            values.append(generator.standard_normal(item["sizes"]).astype(dtype))
        else:
            # indices and masks: zero is valid wherever anything is
            values.append(np.zeros(item["sizes"], dtype))
    console().print("inputs: random numbers of the recorded shapes (--input gives others)", style="dim")
    return values


def _script(path: Path, arguments: tuple[str, ...], options: dict[str, Any]) -> Capture:
    """Run a script as ``python path arguments`` would, inside a capture that a failing script keeps."""
    # slow to import: it needs numpy
    from torchtrt_viz.captures import profile

    saved_argv, saved_path = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with profile(**options) as capture:
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as stop:
                if stop.code not in (None, 0):
                    say(f"the script ended with {stop.code!r}; the capture ends there", err=True)
    finally:
        sys.argv, sys.path[:] = saved_argv, saved_path
    return capture
