"""``trtprofile``: the command line, one module per subcommand.

A subcommand's module is imported only when it is called, so that ``trtprofile --help`` and ``show`` never
pay for torch or plotly.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from torchtrt_viz.errors import TorchTrtVizError

__all__ = ["main"]

#: Subcommand -> one line of help; each lives in torchtrt_viz.cli.<name> as ``command``.
COMMANDS: dict[str, str] = {
    "demo": "Export, run and profile a small network; write every kind of output.",
    "show": "Print what a trace, an archive or a session holds.",
    "export": "Write a trace's tables or its timeline in another format.",
    "report": "Write one HTML report that opens offline.",
    "compare": "Compare two captures, for people and for CI.",
    "run": "Run a program under the profiler: .pte, .pt2 or a Python script.",
    "serve-demo": "Run the example serving engine and profile its workers together.",
    "doctor": "Say what is installed and usable here, and what each gap costs.",
}


class _Lazy(click.Group):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"torchtrt_viz.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torchtrt-viz")
def group() -> None:
    """Capture and analyse profiles of Torch-TensorRT, AOTInductor and ExecuTorch deployments."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors of this package are one message on stderr and exit status 2."""
    try:
        group.main(args=arguments, prog_name="trtprofile", standalone_mode=True)
    except TorchTrtVizError as error:
        click.echo(f"trtprofile: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # the reader of our output (head, less) has closed the pipe
        sys.stderr.close()
        sys.exit(0)
