"""``trtprofile mcp``: traces for agents, over the Model Context Protocol."""

from __future__ import annotations

import click

from torchtrt_viz.evidence.paging import SMALLEST
from torchtrt_viz.mcp_server.descriptions import LARGEST, USUAL
from torchtrt_viz.mcp_server.server import Limits, serve


@click.command("mcp")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--budget",
    default=USUAL,
    show_default=True,
    type=click.IntRange(SMALLEST, LARGEST),
    metavar="BYTES",
    help="Size of an answer that asks for no other.",
)
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="A call that takes longer is answered that its work goes on.",
)
@click.option(
    "--memory",
    default=2048,
    show_default=True,
    type=click.IntRange(0),
    metavar="MIB",
    help="Loaded traces that are kept; the ones used least recently go first.",
)
def command(folders: tuple[str, ...], budget: int, timeout: float, memory: int) -> None:
    """Serve the traces below FOLDERS (default: this one) to agents over stdin and stdout.

    Read-only: nothing is written, nothing outside of FOLDERS is read, and no network is used. The client that
    starts it ends it by closing its input. Needs the extra mcp.
    """
    serve(folders or (".",), Limits(budget, timeout, memory << 20))
