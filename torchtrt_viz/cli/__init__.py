"""``trtprofile``: the command line, one module per subcommand.

A subcommand's module is imported only when it is called, so that ``trtprofile --help`` and ``show`` never
pay for torch or plotly.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from torchtrt_viz.cli.json_mode import asked_for_json, write_failure
from torchtrt_viz.cli.streams import PIPE_CLOSED, any_locale, detach, say
from torchtrt_viz.errors import TorchTrtVizError

__all__ = ["main"]

#: Subcommand -> one line of help; each lives in torchtrt_viz.cli.<name> as ``command``.
COMMANDS: dict[str, str] = {
    "demo": "Export, run and profile a small network; write every kind of output.",
    "show": "Print what a trace, an archive or a session holds.",
    "export": "Write a trace's tables or its timeline in another format.",
    "save": "Write a trace or a session as Parquet, which load(), DuckDB and polars read.",
    "report": "Write one HTML report that opens offline.",
    "compare": "Compare two captures, for people and for CI.",
    "run": "Run a program under the profiler: .pte, .pt2 or a Python script.",
    "serve-demo": "Run the example serving engine and profile its workers together.",
    "mcp": "Serve traces to agents (Model Context Protocol over stdio, read-only).",
    "doctor": "Say what is installed and usable here, and what each gap costs.",
}

INTERRUPTED = 130

#: Exit status -> what it says, of every command; `compare` and `doctor` give 1 a meaning of their own.
EXIT_STATUSES: dict[str, str] = {
    "0": "Done.",
    "1": "Refused: a file is in the way. Of compare: something is slower. Of doctor: something is broken.",
    "2": "Wrong options, or unusable input; the message says what to do.",
    "3, 4": "Of compare: nothing comparable; different programs.",
    str(INTERRUPTED): "Interrupted.",
    str(PIPE_CLOSED): "The reader of the output has gone.",
}


class _ReaderGoneError(Exception):
    """Nobody reads what is printed any more."""


class _Lazy(click.Group):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        any_locale()
        module = import_module(f"torchtrt_viz.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error  # click would end with a status of its own

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Exit status"):
            formatter.write_dl(list(EXIT_STATUSES.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torchtrt-viz")
def group() -> None:
    """Capture and analyse profiles of Torch-TensorRT, AOTInductor and ExecuTorch deployments."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors of this package are one message on stderr and exit status 2."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except (_ReaderGoneError, BrokenPipeError):
        detach()
        status = PIPE_CLOSED
    sys.exit(status)


def _run(arguments: list[str] | None) -> int:
    """Run a command and return its exit status; what it has to say about a failure is said."""
    try:
        status = group.main(args=arguments, prog_name="trtprofile", standalone_mode=False)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) or ended.code is None else 1
    except click.ClickException as error:
        any_locale()
        if asked_for_json(arguments):
            write_failure(error, arguments)
        else:
            error.show(sys.stderr)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("trtprofile: interrupted", err=True)
        return INTERRUPTED
    except TorchTrtVizError as error:
        say(f"trtprofile: {error}", err=True)
        return 2
    return status if isinstance(status, int) else 0
