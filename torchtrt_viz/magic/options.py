"""The options of ``%%trtprofile`` and ``%trtprofile``: a capture's, and what to do with it afterwards."""

from __future__ import annotations

import keyword
import re
import shlex
from argparse import SUPPRESS, Action, ArgumentParser, HelpFormatter, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NoReturn

from torchtrt_viz.capture.options import CaptureOptions, arguments, capture_options
from torchtrt_viz.errors import OptionError

__all__ = ["MAGIC", "VIEWS", "MagicOptions", "flags", "help_text", "parse", "split", "wants_help"]

MAGIC = "trtprofile"
VIEWS = ("timeline", "summary", "table", "none")
_TOKEN = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*")+""")

_INTRODUCTION = """\
Capture what a cell, or one statement, runs: programs and their delegates, engines, torch operators.

    %%trtprofile [options]            first line of a cell
    %trtprofile [options] STATEMENT   one statement

The cell behaves as if its first line were not there. What was captured is shown below its own output;
`torchtrt_viz.last()` has it, and -o NAME binds it to a name: NAME.trace is the trace, NAME.summary() what the
capture cost. Nothing is written to the working directory unless --save asks for it.
"""
_EXAMPLES = """\
    %%trtprofile --level layers -o run      also the layers of engines; bound to `run`
    %%trtprofile --view summary             tables without the timeline
    %%trtprofile --compare before           what changed since the capture bound to `before`
    %%trtprofile --save out --force         raw files, which torchtrt_viz.load("out") reads
    %trtprofile y = program(x)              one statement, taken as it is
"""


@dataclass(frozen=True)
class MagicOptions:
    """What a magic's line asks for; ``statement`` is the rest of the line."""

    capture: CaptureOptions
    out: str | None = None
    view: str | None = None
    save: str | None = None
    force: bool = False
    keep: bool = False
    compare: str | None = None
    give_back: bool = False
    statement: str = ""


class _ArgumentParser(ArgumentParser):
    """Reports errors as exceptions: a magic must not end the process."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


@dataclass
class _Parser:
    parser: _ArgumentParser
    actions: list[Action] = field(default_factory=list)

    def takes_value(self, flag: str) -> bool:
        """Whether a flag is followed by a value; False for unknown flags."""
        return any(flag in action.option_strings and action.nargs != 0 for action in self.actions)


@cache
def _parser() -> _Parser:
    parser = _ArgumentParser(
        prog=f"%%{MAGIC}",
        usage=SUPPRESS,
        add_help=False,
        allow_abbrev=False,
        argument_default=SUPPRESS,
        formatter_class=lambda prog: HelpFormatter(prog, max_help_position=28, width=100),
    )
    made = _Parser(parser)
    capture = parser.add_argument_group("what to capture")
    for flag, keywords in arguments():
        made.actions.append(capture.add_argument(flag, **{**keywords, "default": SUPPRESS}))
    result = parser.add_argument_group("what to do with it")
    for names, more in (
        (("-o", "--out"), {"metavar": "NAME", "help": "bind the capture to this name"}),
        (
            ("--view",),
            {
                "choices": VIEWS,
                "help": "timeline (tables and the widget; the default where widgets are installed), summary "
                "(tables), table (operators only), none",
            },
        ),
        (("-q", "--quiet"), {"action": "store_true", "help": "show nothing (--view none)"}),
        (
            ("--compare",),
            {
                "metavar": "NAME",
                "help": "compare with a capture or trace bound to this name, or with 'last'",
            },
        ),
        (
            ("--save",),
            {"metavar": "PATH", "help": "write the raw files into this folder, or a page (PATH.html)"},
        ),
        (("--force",), {"action": "store_true", "help": "let --save overwrite"}),
        (("--keep",), {"action": "store_true", "help": "keep the raw files in a temporary folder"}),
        (
            ("-r", "--return"),
            {"action": "store_true", "dest": "give_back", "help": "line form: return the capture"},
        ),
        (("-h", "--help"), {"action": "store_true", "dest": "help", "help": "show this and run nothing"}),
    ):
        made.actions.append(result.add_argument(*names, **more))
    return made


def help_text() -> str:
    """Return the manual, as ``%%trtprofile?`` and ``-h`` show it."""
    return f"{_INTRODUCTION}\n{_parser().parser.format_help().strip()}\n\nexamples:\n{_EXAMPLES}"


def flags() -> list[tuple[tuple[str, ...], tuple[str, ...] | None, bool]]:
    """Return (names, choices, takes a value) of every option, for completion."""
    return [
        (
            tuple(action.option_strings),
            None if action.choices is None else tuple(map(str, action.choices)),
            action.nargs != 0,
        )
        for action in _parser().actions
    ]


def split(line: str) -> tuple[list[str], str]:
    """Cut the options off the front of a line; return them, and the rest of the line untouched.

    ``--`` ends the options, for statements that begin with a dash.

    Raises
    ------
    ValueError
        When a quote in the options is not closed.
    """
    parser = _parser()
    words: list[str] = []
    at = 0
    while True:
        while at < len(line) and line[at].isspace():
            at += 1
        if not line.startswith("-", at):
            return words, line[at:]
        token = _TOKEN.match(line, at)
        if token is None:
            raise ValueError("a quote is not closed")
        if token[0] == "--":
            return words, line[token.end() :].lstrip()
        words.append(_unquoted(token[0]))
        at = token.end()
        if parser.takes_value(words[-1]):
            while at < len(line) and line[at].isspace():
                at += 1
            value = _TOKEN.match(line, at)
            if value is None:
                if at < len(line):
                    raise ValueError("a quote is not closed")
                return words, ""
            words.append(_unquoted(value[0]))
            at = value.end()


def _unquoted(token: str) -> str:
    return "".join(shlex.split(token))


def wants_help(line: str) -> bool:
    """Tell whether the options of a line ask for the manual."""
    try:
        words, _ = split(line)
    except ValueError:
        return False
    return "-h" in words or "--help" in words


def parse(line: str, *, cell: bool, expand: Callable[[str], str] = str) -> MagicOptions:
    """Read a magic's line; nothing is started for a line that is wrong.

    Parameters
    ----------
    cell
        Whether it is the first line of a cell, which takes no statement.
    expand
        Applied to values of options that hold ``{`` or ``$``, as IPython expands variables.

    Raises
    ------
    IPython.core.error.UsageError
        For any invalid option; the message says what is allowed.
    """
    from IPython.core.error import UsageError

    try:
        words, statement = split(line)
        words = [expand(word) if "{" in word or "$" in word else word for word in words]
        found: Namespace = _parser().parser.parse_args(words)
        values = vars(found)
        own = {
            name: values.pop(name)
            for name in ("out", "view", "save", "force", "keep", "compare", "give_back")
            if name in values
        }
        if values.pop("quiet", False):
            own["view"] = "none"
        values.pop("help", None)
        options = MagicOptions(capture_options(values), statement=statement, **own)
        _check(options, cell)
    except (UsageError, OptionError, ValueError) as error:
        raise UsageError(f"%{'%' if cell else ''}{MAGIC}: {error} (-h lists the options)") from None
    return options


def _check(options: MagicOptions, cell: bool) -> None:
    if cell and options.statement:
        raise ValueError(
            f"takes only options on its line, found {options.statement.strip()[:40]!r}; "
            f"for one statement use %{MAGIC} STATEMENT"
        )
    if cell and options.give_back:
        raise ValueError("-r is for the line form; -o NAME binds the capture")
    if options.out is not None and (not options.out.isidentifier() or keyword.iskeyword(options.out)):
        raise ValueError(f"-o needs a name that can be bound, not {options.out!r}")
    if options.force and options.save is None:
        raise ValueError("--force is for --save PATH")
