"""The option that names recordings of graphs' captures."""

from __future__ import annotations

import click

__all__ = ["graph_captures"]

graph_captures = click.option(
    "--graphs",
    multiple=True,
    type=click.Path(),
    help="Trace, or folder of traces, of the capture of CUDA or HIP graphs (repeatable): kernels of their "
    "launches get its operators. Captures among PATHS are found without it.",
)
