"""What a magic shows: a static bundle that every viewer keeps, then the timeline widget, apart from it.

A widget and HTML in one bundle would hide the HTML wherever no kernel runs. The HTML has no script, no style
sheet and no SVG, because untrusted notebooks drop them; every name in it is escaped.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.catalogue import TABLES, shown_in
from torchtrt_viz.errors import CaptureError, MissingDependencyError, OptionError
from torchtrt_viz.magic.options import MagicOptions
from torchtrt_viz.report.columns import duration, one_line, show
from torchtrt_viz.report.markup import escape

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.captures import Capture
    from torchtrt_viz.trace import Trace

__all__ = ["check_target", "deliver", "reference"]

_OPERATOR_ROWS = 30
_COMPARED = ["level", "name", "domain", "verdict", "change_pct", "a_ns", "b_ns"]


@dataclass(frozen=True)
class _Section:
    heading: str
    table: str
    frame: pd.DataFrame
    more: int = 0


def check_target(path: Path, force: bool) -> None:
    """Refuse a place for ``--save`` before anything runs, rather than after it.

    Raises
    ------
    CaptureError
        When something is there already and ``force`` is not set.
    """
    taken = path if path.suffix == ".html" or path.is_file() else path / "capture.json"
    if taken.exists() and (not force or taken.is_dir() or (path.is_file() and path.suffix != ".html")):
        raise CaptureError(f"{taken} exists already: save to another place, or add --force to overwrite it")


def reference(name: str, namespace: Mapping[str, Any]) -> Trace:
    """Return the trace to compare with, by the name that the user gave.

    Raises
    ------
    OptionError
        When nothing suitable has that name.
    """
    # slow to import: it needs numpy
    from torchtrt_viz.captures import Capture, last
    from torchtrt_viz.trace import Trace

    value = last() if name == "last" and "last" not in namespace else namespace.get(name)
    if isinstance(value, Capture):
        return value.trace
    if isinstance(value, Trace):
        return value
    found = "nothing" if value is None else f"a {type(value).__name__}"
    raise OptionError(
        "compare", name, f"a capture or trace is needed there, found {found}; -o NAME binds a capture"
    )


def deliver(capture: Capture, options: MagicOptions, shell: Any, compared: Trace | None) -> None:
    """Write and show what the options ask for.

    Raises
    ------
    TorchTrtVizError
        When the capture cannot be read or written.
    """
    notes = []
    if options.save is not None:
        notes.append(f"saved to {_save(capture, Path(options.save), options.force)}")
    if options.keep:
        folder = Path(tempfile.mkdtemp(prefix="trtprofile-"))
        notes.append(f"raw files kept in {capture.save(folder, force=True)}")
    if options.view == "none":
        if options.save is not None or options.keep:
            print("\n".join(notes))
        return
    if capture.options.level == "off":
        print("trtprofile: level off, nothing was captured")
        return
    live, trouble = _live(capture, shell, options.view)
    kept = "" if live is None else live.kept
    _publish(shell, *_bundle(capture, options.view, notes, compared, kept))
    if live is not None:
        from IPython.display import display

        display(live)
    elif trouble:
        print(trouble, file=sys.stderr)


def _save(capture: Capture, path: Path, force: bool) -> Path:
    if path.suffix != ".html":
        return capture.save(path, force=force)
    capture.trace.to_html(path)
    return path


def _publish(shell: Any, text: str, html: str) -> None:
    if _has_frontend(shell):
        shell.display_pub.publish({"text/plain": text, "text/html": html})
    else:
        print(text)


def _has_frontend(shell: Any) -> bool:
    """Whether the front end is a notebook; a terminal gets text."""
    return getattr(shell, "kernel", None) is not None


def _live(capture: Capture, shell: Any, view: str | None) -> tuple[Any, str]:
    """Return what is shown live, verdict, timeline and tables or the timeline alone; or why nothing is."""
    if view not in (None, "timeline") or len(capture.trace.spans) == 0:
        return None, ""
    if not _has_frontend(shell):
        return None, "trtprofile: the timeline needs a notebook" if view == "timeline" else ""
    try:
        import ipywidgets  # noqa: F401

        if view == "timeline":
            timeline = capture.trace.timeline()
            timeline.kept = ""  # the notebook keeps the report above it
            return timeline, ""
        explorer = capture.trace.explore()
        explorer.kept_elsewhere = True  # the report above it, which it hides
        return explorer, ""
    except ImportError as error:
        missing = error if isinstance(error, MissingDependencyError) else None
        return None, str(missing or MissingDependencyError("ipywidgets", "lab", "show the timeline"))


def _bundle(
    capture: Capture, view: str | None, notes: list[str], compared: Trace | None, kept: str = ""
) -> tuple[str, str]:
    """Return the static report as text and as HTML; the live form ``kept`` hides what it shows itself."""
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.answers.judgement import judge
    from torchtrt_viz.report.static_html import static_html, static_text
    from torchtrt_viz.report.verdict.html import static_verdict
    from torchtrt_viz.report.verdict.text import verdict_lines
    from torchtrt_viz.report.verdict.words import verdict_words

    trace = capture.trace
    head = _headline(capture)
    warning = _ending(capture)
    sections = _sections(trace, view, compared)
    still: list[str] = []
    texts = [head, *([warning] if warning else [])]
    parts = [f'<div style="font-weight:600">{escape(head)}</div>']
    if warning:
        parts.append(f'<div style="color:#b3261e;font-weight:600">{escape(warning)}</div>')
    if len(trace.spans) == 0:
        nothing = (
            "Nothing was recorded: no program ran, and no torch operator. Load programs with "
            "torchtrt_viz.Program, or import torch before the cell."
        )
        texts.append(nothing)
        parts.append(f"<div>{escape(nothing)}</div>")
    elif view != "table":
        words = verdict_words(judge(trace))
        texts += [*verdict_lines(words), static_text(trace)]
        still += [static_verdict(words), static_html(trace)]
    for section in sections:
        texts += _text_table(section)
        (parts if section.table == "compare" else still).append(_html_table(section))
    if still:
        name = f' class="tv-kept-{escape(kept)}"' if kept else ""
        parts.append(f"<div{name}>{''.join(still)}</div>")
    closing = [*notes, *_costs(capture), *(f"not captured: {problem}" for problem in capture.problems)]
    texts += closing
    parts += [f'<div style="font-size:12px">{escape(note)}</div>' for note in closing]
    return "\n".join(texts), f'<div style="margin:4px 0;font-size:13px">{"".join(parts)}</div>'


def _headline(capture: Capture) -> str:
    runs = sum(recorded.runs for recorded in capture._recorded)
    words = [f"trtprofile: level {capture.options.level}", f"block {duration(capture.wall_seconds * 1e9)}"]
    if runs:
        words.append(f"{runs} program run{'s' if runs != 1 else ''}")
    return ", ".join(words)


def _ending(capture: Capture) -> str:
    error = capture.error
    return "" if error is None else f"the cell raised {type(error).__name__}; the trace ends there"


def _costs(capture: Capture) -> list[str]:
    """Say what the capture itself cost, from its own summary."""
    summary = capture.summary()
    rows = {str(row["item"]): row for row in summary.to_dict("records")}
    inside = rows.get("recording inside the block")
    if inside is None or not str(inside["note"]):
        return []
    return [f"cost of recording, estimated: {inside['value']} {inside['unit']} ({inside['note']})"]


def _sections(trace: Trace, view: str | None, compared: Trace | None) -> list[_Section]:
    out = []
    if compared is not None:
        out.append(_comparison(compared, trace))
    if view == "table":
        frame = trace.operators()
        title = TABLES["operators"].title
        out.append(_section(title, "operators", frame, list(frame.columns), _OPERATOR_ROWS))
        return out
    for name, table in shown_in("cell").items():
        frame = table(trace)
        if len(frame):
            out.append(_section(table.title, name, frame, table.brief, table.rows))
    return out


def _section(heading: str, table: str, frame: pd.DataFrame, columns: Sequence[str], rows: int) -> _Section:
    known = [column for column in columns if column in frame.columns and not frame[column].isna().all()]
    return _Section(heading, table, frame[known].head(rows), max(0, len(frame) - rows))


def _comparison(before: Trace, after: Trace) -> _Section:
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.runs.comparison import compare

    table = compare(before, after)
    counts = table["verdict"].value_counts()
    words = ", ".join(f"{int(counts[verdict])} {verdict}" for verdict in counts.index if counts[verdict])
    changed = table[~table["verdict"].isin(["same", "unclear"])]
    if table.attrs["outcome"] in ("different programs", "nothing comparable"):
        # what is absent on one side is no pass
        words = f"{table.attrs['outcome']} ({table.attrs['coverage']}); {words}"
    return _section(f"Compared: {words or 'nothing in common'}", "compare", changed, _COMPARED, 20)


def _text_table(section: _Section) -> list[str]:
    lines = [section.heading]
    columns = show(section.frame, section.table, readable=True)
    texts = [[column.title, *(_cut(one_line(text)) for text in column.texts)] for column in columns]
    widths = [max(map(len, column)) for column in texts]
    for row in range(len(section.frame) + 1 if len(section.frame) else 0):
        cells = [
            text[row].rjust(width) if column.numeric else text[row].ljust(width)
            for text, width, column in zip(texts, widths, columns, strict=True)
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    if section.more:
        lines.append(f"  {section.more} more")
    return lines


def _cut(text: str, width: int = 48) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _html_table(section: _Section) -> str:
    columns = show(section.frame, section.table, readable=True)
    styles = [
        "padding:1px 10px;vertical-align:top;text-align:"
        + ("right;white-space:nowrap" if column.numeric else "left;max-width:480px;overflow-wrap:break-word")
        for column in columns
    ]

    def row(tag: str, texts: list[str]) -> str:
        cells = (
            f'<{tag} style="{style}">{escape(text)}</{tag}>'
            for style, text in zip(styles, texts, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(row("td", [column.texts[i] for column in columns]) for i in range(len(section.frame)))
    more = f'<div style="font-size:12px">{section.more} more</div>' if section.more else ""
    return (
        f'<div style="margin-top:8px;font-weight:600">{escape(section.heading)}</div>'
        + (
            '<table style="border-collapse:collapse;font-size:12px"><thead>'
            f"{row('th', [column.title for column in columns])}</thead><tbody>{body}</tbody></table>"
            if len(section.frame)
            else ""
        )
        + more
    )
