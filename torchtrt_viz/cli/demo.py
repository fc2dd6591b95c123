"""``trtprofile demo``: the main job on a small real network, in under a minute."""

from __future__ import annotations

from pathlib import Path

import click

from torchtrt_viz.cli.json_mode import Asked, json_option
from torchtrt_viz.cli.output import console, heading
from torchtrt_viz.cli.streams import say
from torchtrt_viz.cli.trace_tables import print_trace
from torchtrt_viz.evidence.envelope import Evidence
from torchtrt_viz.evidence.expressions import loading
from torchtrt_viz.evidence.sheets import trace_sheets
from torchtrt_viz.evidence.sources import source_of, warnings_of
from torchtrt_viz.examples.demo import run_demo
from torchtrt_viz.report.table import write_table


@click.command("demo")
@click.option(
    "-o",
    "--output",
    default="trtprofile-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for everything that is written.",
)
@click.option(
    "--runs", default=5, show_default=True, type=click.IntRange(1, 10_000), help="Executions to capture."
)
@click.option(
    "--level",
    default="layers",
    show_default=True,
    type=click.Choice(["delegate", "phases", "layers"]),
    help="Detail of the capture.",
)
@json_option
def command(output: Path, runs: int, level: str, asked: Asked | None) -> Evidence | None:
    """Export a small real network, run it under the profiler, and write every kind of output.

    The network has a convolution stem, attention, and a tail that TensorRTBackend does not take, so that one
    program holds TensorRTBackend, XNNPACK and portable regions. Without a GPU the engines are host engines:
    real numerics and real times, on the CPU, and every artifact says so.
    """
    say("exporting the network and running it ...")

    result = run_demo(output, runs=runs, level=level)
    trace = result.trace
    say(f"outputs equal eager PyTorch to {result.max_error:.1e}")
    written = dict(result.files)
    operators = trace.operators()
    write_table(operators, output / "operators.csv")
    trace.to_html(output / "report.html", title="trtprofile demo")
    trace.to_perfetto(output / "demo.pftrace")
    written |= {
        "operators": output / "operators.csv",
        "report": output / "report.html",
        "perfetto": output / "demo.pftrace",
    }
    if asked is not None:
        expression = loading([result.files["capture"]])
        found = Evidence("demo", asked.arguments, [source_of(trace, expression)])
        for what, path in written.items():
            found.wrote(what, path)
        found.tables = trace_sheets(trace, expression)
        found.facts = {"max_error_against_eager": result.max_error}
        found.warnings = warnings_of(trace)
        return found
    print_trace(trace, limit=12)
    heading("Written")
    for what, path in written.items():
        console().print(f"  {what:<10} {path}", markup=False, highlight=False)
    say(f"\nopen {output / 'report.html'} in a browser; load the rest with torchtrt_viz.load(...)")
    return None
