"""The answers: each tool takes plain arguments and returns a document's contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from torchtrt_viz.analysis.catalogue import FRAMES, SESSION_TABLES, TABLES
from torchtrt_viz.errors import OptionError, TorchTrtVizError
from torchtrt_viz.evidence.envelope import Evidence, Sheet, only
from torchtrt_viz.evidence.expressions import Condition, call, chosen, loading
from torchtrt_viz.evidence.sheets import EVENT_FRAMES, sheet, table_of, title_of, trace_sheets
from torchtrt_viz.evidence.sources import source_of, warnings_of
from torchtrt_viz.formats.io.source import Source, archive_kind
from torchtrt_viz.loading.sniffing import sniff
from torchtrt_viz.mcp_server.folders import Folders
from torchtrt_viz.mcp_server.held import Held
from torchtrt_viz.mcp_server.span_facts import span_facts
from torchtrt_viz.session import Session
from torchtrt_viz.trace import Trace

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.progress import Progress

__all__ = ["Questions"]

_MOST_LISTED = 2_000
_OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "contains")
_RANKS = "session.ranks"


class Questions:
    """Answers about the traces of some folders.

    Every method is a tool: its keyword arguments are the tool's, ``progress`` aside.
    """

    def __init__(self, folders: Folders, held: Held) -> None:
        self.folders = folders
        self.held = held
        self._formats: dict[tuple[str, int, int], str | None] = {}

    @property
    def tools(self) -> dict[str, Callable[..., Evidence]]:
        """The tools by their names."""
        names = ("traces", "tables", "verdict", "summary", "explain", "table", "span", "compare", "ranks")
        return {name: getattr(self, name) for name in names}

    # -- what there is -------------------------------------------------------------------------------

    def traces(self, *, folder: str | None = None, progress: Progress | None = None) -> Evidence:
        """List the files that can be loaded, and the folders that hold several."""
        tops = list(self.folders.by_name.values()) if folder is None else [self.folders.find(folder)]
        rows: list[tuple[str, str, str | None, int, str | None]] = []
        left = 0
        for top in tops:
            found_here: list[Path] = []
            for path in self.folders.walk(top) if top.is_dir() else [top]:
                if len(rows) >= _MOST_LISTED:
                    left += 1
                    continue
                found = self._row(path)
                if found is not None:
                    rows.append(found)
                    found_here.append(path)
            rows += [(self.folders.name(path), "folder", None, 0, None) for path in _joining(found_here, top)]
        rows.sort()
        frame = pd.DataFrame(rows, columns=["trace", "kind", "format", "bytes", "modified"])
        out = Evidence("traces", _given(folder=folder))
        out.facts = {"folders": list(self.folders.by_name), "files_not_looked_at": left}
        out.tables = [Sheet("traces", frame, title="What can be loaded")]
        return out

    def tables(self, *, name: str | None = None, progress: Progress | None = None) -> Evidence:
        """Say which tables there are, or describe the columns of one."""
        out = Evidence("tables", _given(name=name))
        if name is not None:
            known = FRAMES.get(name) or FRAMES.get(f"session.{name}")
            if known is None:
                raise OptionError("name", name, f"one of {', '.join(_all_tables())}")
            expression = f"tv.schema.table({known.name!r}).describe()"
            out.tables = [Sheet("columns", known.describe(), title=known.meaning, expression=expression)]
            return out
        rows = [(name, of, meaning) for name, (of, meaning) in _all_tables().items()]
        frame = pd.DataFrame(rows, columns=["name", "of", "meaning"])
        out.tables = [Sheet("tables", frame, title="Tables for the tool `table`")]
        return out

    # -- answers about one trace ---------------------------------------------------------------------

    def verdict(
        self, *, trace: str, rank: int | None = None, top: int = 7, progress: Progress | None = None
    ) -> Evidence:
        """What could make the capture shorter, each finding with the expression that proves it."""
        path = self.folders.find(trace)
        with self.held.using(path, rank, progress) as loaded:
            out, expression = self._about("verdict", loaded, path, trace=trace, rank=rank, top=top)
            if isinstance(loaded, Session):
                found = loaded.explain(top=top)
                of = call(expression, "explain", top=top)
                out.tables = [sheet("session.explain", found, "What stands out over the ranks", of)]
            else:
                found = loaded.verdict(top=top)
                of = call(expression, "verdict", top=top)
                out.tables = [sheet("verdict", found, TABLES["verdict"].title, of)]
            return out

    def summary(self, *, trace: str, rank: int | None = None, progress: Progress | None = None) -> Evidence:
        """Totals, host and GPU apart."""
        path = self.folders.find(trace)
        with self.held.using(path, rank, progress) as loaded:
            out, expression = self._about("summary", loaded, path, trace=trace, rank=rank)
            if isinstance(loaded, Session):
                made = loaded.overview()
                of = f"{expression}.overview()"
                out.tables = [sheet(_RANKS, loaded.ranks, "Ranks", f"{expression}.ranks")]
                for name in ("totals", "roles"):
                    out.tables.append(sheet(f"session.{name}", getattr(made, name), name, f"{of}.{name}"))
            else:
                out.tables = trace_sheets(loaded, expression, ("summary", "host_gpu"))
            return out

    def explain(self, *, trace: str, rank: int | None = None, progress: Progress | None = None) -> Evidence:
        """The six questions with what was measured and what not; of a session, hangs and requests."""
        path = self.folders.find(trace)
        with self.held.using(path, rank, progress) as loaded:
            out, expression = self._about("explain", loaded, path, trace=trace, rank=rank)
            if isinstance(loaded, Session):
                made = loaded.overview()
                out.tables = [
                    sheet(
                        f"session.{name}",
                        getattr(made, name),
                        SESSION_TABLES[name].title,
                        f"{expression}.overview().{name}",
                    )
                    for name in ("hangs", "stragglers", "requests")
                    if len(getattr(made, name))
                ]
            else:
                out.tables = trace_sheets(loaded, expression, ("questions", "explain"))
            return out

    def table(
        self,
        *,
        trace: str,
        name: str,
        rank: int | None = None,
        columns: Sequence[str] = (),
        where: Sequence[Mapping[str, Any]] = (),
        sort: str | None = None,
        descending: bool = True,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> Evidence:
        """Rows of a table: filtered, sorted, some columns."""
        path = self.folders.find(trace)
        conditions = [_condition(given) for given in where]
        with self.held.using(path, rank, progress) as loaded:
            out, expression = self._about(
                "table",
                loaded,
                path,
                trace=trace,
                rank=rank,
                name=name,
                columns=list(columns),
                where=[dict(one) for one in where],
                sort=sort,
                descending=descending,
                limit=limit,
            )
            made = _table(loaded, expression, name)
            frame = _filtered(made.frame, conditions)
            if sort is not None:
                frame = _sorted(frame, sort, descending)
            if columns:
                for column in columns:
                    _known(made.frame, column, "columns")
                frame = only(frame, columns)
            of = chosen(
                str(made.expression), where=conditions, sort=sort, descending=descending, columns=columns
            )
            count = len(frame)
            if limit is not None:
                frame = frame.head(limit)
            out.facts = {"rows_of_the_table": len(made.frame), "rows_chosen": count}
            out.tables = [Sheet(made.name, frame, made.schema, made.title, of, row_count=count)]
            return out

    def span(
        self, *, trace: str, row: int, rank: int | None = None, progress: Progress | None = None
    ) -> Evidence:
        """Everything about one span: its fields and details, what it is inside of, what launched it."""
        path = self.folders.find(trace)
        with self.held.using(path, rank, progress) as loaded:
            if isinstance(loaded, Session):
                raise OptionError("rank", rank, f"needed: {_numbers(loaded)}")
            out, expression = self._about("span", loaded, path, trace=trace, rank=rank, row=row)
            out.facts, out.tables = span_facts(loaded, row, expression)
            return out

    def ranks(self, *, trace: str, progress: Progress | None = None) -> Evidence:
        """The ranks of a session, and which of them others wait for."""
        path = self.folders.find(trace)
        with self.held.using(path, None, progress) as loaded:
            if not isinstance(loaded, Session):
                raise OptionError("trace", trace, "a session of several ranks; this is one recording")
            out, expression = self._about("ranks", loaded, path, trace=trace)
            out.tables = [sheet(_RANKS, loaded.ranks, "Ranks", f"{expression}.ranks")]
            found = loaded.overview().stragglers
            title = SESSION_TABLES["stragglers"].title
            out.tables.append(
                sheet("session.stragglers", found, title, f"{expression}.overview().stragglers")
            )
            return out

    def compare(
        self,
        *,
        before: str,
        after: str,
        min_change_pct: float = 1.0,
        progress: Progress | None = None,
    ) -> Evidence:
        """What changed between two captures of one program, beyond the noise within them."""
        from torchtrt_viz.analysis.runs.comparison import compare, outcome  # slow to import: it needs scipy

        paths = {name: self.folders.find(name) for name in (before, after)}
        with ExitStack() as stack:
            # in one order, whoever asks: two questions never wait for each other
            loaded = {
                path: stack.enter_context(self.held.using(path, None, progress))
                for path in sorted(set(paths.values()))
            }
            traces = [loaded[paths[name]] for name in (before, after)]
            if not all(isinstance(one, Trace) for one in traces):
                raise OptionError("before", before, "two recordings; of a session name one rank's file")
            loads = [loading([paths[name]]) for name in (before, after)]
            first, second = cast("list[Trace]", traces)
            table = compare(first, second, min_change_pct=min_change_pct)
            out = Evidence("compare", _given(before=before, after=after, min_change_pct=min_change_pct))
            out.sources = [source_of(one, load) for one, load in zip(traces, loads, strict=True)]
            out.warnings = warnings_of(*traces)
            of = f"tv.analysis.compare({', '.join(loads)}, min_change_pct={min_change_pct!r})"
            out.tables = [sheet("compare", table, "What changed", of)]
            out.facts = {
                "outcome": outcome(table),
                "verdicts": table["verdict"].value_counts().to_dict(),
                "program_coverage_pct": table.attrs["program_coverage_pct"],
            }
            return out

    # -- parts of answers ----------------------------------------------------------------------------

    def _about(
        self, tool: str, loaded: Trace | Session, path: Path, *, rank: int | None = None, **given: Any
    ) -> tuple[Evidence, str]:
        """Return the beginning of an answer, and the expression that loads what it is about."""
        expression = loading([path])
        if rank is not None:
            expression = f"{expression}.trace({rank})"
        out = Evidence(tool, _given(**given, rank=rank), [source_of(loaded, expression)])
        out.warnings = warnings_of(loaded)
        return out, expression

    def _row(self, path: Path) -> tuple[str, str, str | None, int, str] | None:
        """Return what is known of a file without loading it; None for what no loader knows."""
        found = path.stat()
        key = (str(path), found.st_size, found.st_mtime_ns)
        if key not in self._formats:
            self._formats[key] = _format(path)
        what = self._formats[key]
        if what is None:
            return None
        modified = datetime.fromtimestamp(found.st_mtime, UTC).isoformat(timespec="seconds")
        kind = "archive" if what == "archive" else "file"
        return self.folders.name(path), kind, what, found.st_size, modified


def _joining(files: Sequence[Path], top: Path) -> list[Path]:
    """Return the folders below which files of several places meet: each can be loaded as a session."""
    within: dict[Path, set[Path]] = {}
    for path in files:
        below = path
        for folder in path.parents:
            within.setdefault(folder, set()).add(below)
            if folder == top:
                break
            below = folder
    return [folder for folder, entries in within.items() if len(entries) > 1]


def _format(path: Path) -> str | None:
    """Return the format of a file by its content, ``archive`` for one; None for what no loader knows."""
    try:
        source = Source(path)
        return "archive" if archive_kind(source) is not None else sniff(source)
    except (TorchTrtVizError, OSError):
        return None


def _given(**arguments: Any) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value not in (None, [], ())}


def _all_tables() -> dict[str, tuple[str, str]]:
    """Return every table that the tool `table` knows: what it is of, and what one row is."""
    found = {name: ("trace", entry.schema.meaning) for name, entry in TABLES.items()}
    found |= {name: ("trace", meaning) for name, meaning in EVENT_FRAMES.items()}
    found["session.ranks"] = ("session", FRAMES[_RANKS].meaning)
    return found | {
        f"session.{name}": ("session", entry.schema.meaning) for name, entry in SESSION_TABLES.items()
    }


def _table(loaded: Trace | Session, expression: str, name: str) -> Sheet:
    """Return a whole table by its name."""
    if isinstance(loaded, Session):
        known = name.removeprefix("session.")
        if known == "ranks":
            return sheet(_RANKS, loaded.ranks, "Ranks", f"{expression}.ranks")
        if known not in SESSION_TABLES:
            choices = ", ".join(["session.ranks", *(f"session.{one}" for one in SESSION_TABLES)])
            raise OptionError("name", name, f"of a session one of {choices}; for others give a rank")
        frame = getattr(loaded.overview(), known)
        of = f"{expression}.overview().{known}"
        return sheet(f"session.{known}", frame, SESSION_TABLES[known].title, of)
    if name not in TABLES and name not in EVENT_FRAMES:
        raise OptionError("name", name, f"one of {', '.join([*TABLES, *EVENT_FRAMES])}")
    of = f"{expression}.{name}" + ("" if name in EVENT_FRAMES else "()")
    return sheet(name, table_of(loaded, name), title_of(name), of)


def _condition(given: Mapping[str, Any]) -> Condition:
    if set(given) != {"column", "op", "value"} or given["op"] not in _OPERATORS:
        raise OptionError("where", dict(given), f"column, op (one of {', '.join(_OPERATORS)}) and value")
    value = given["value"]
    if not isinstance(value, (str, int, float)) or (given["op"] == "contains" and not isinstance(value, str)):
        raise OptionError("where", dict(given), "a text, a number or true or false as its value")
    return Condition(str(given["column"]), given["op"], value)


def _known(frame: pd.DataFrame, column: str, option: str) -> pd.Series:
    if column not in frame.columns:
        raise OptionError(option, column, f"a column of the table: {', '.join(map(str, frame.columns))}")
    return frame[column]


def _filtered(frame: pd.DataFrame, conditions: Sequence[Condition]) -> pd.DataFrame:
    """Return the rows that fit all conditions; a missing value fits none."""
    keep: Any = None
    for condition in conditions:
        values = _known(frame, condition.column, "where")
        try:
            mask = _mask(values, condition)
        except TypeError as error:
            words = f"a value that {condition.column} ({values.dtype}) can be compared with"
            raise OptionError("where", condition.value, words) from error
        mask = mask.fillna(False).astype(bool) & values.notna()
        keep = mask if keep is None else keep & mask
    if keep is None:
        return frame
    part: pd.DataFrame = frame[keep]
    part.attrs.update(frame.attrs)
    return part


def _mask(values: pd.Series, condition: Condition) -> pd.Series:
    value = condition.value
    if condition.op == "contains":
        return values.astype(str).str.contains(value, case=False, regex=False)
    compared = {
        "==": values.eq,
        "!=": values.ne,
        "<": values.lt,
        "<=": values.le,
        ">": values.gt,
        ">=": values.ge,
    }[condition.op]
    return cast("pd.Series", compared(value))


def _sorted(frame: pd.DataFrame, column: str, descending: bool) -> pd.DataFrame:
    _known(frame, column, "sort")
    try:
        made: pd.DataFrame = frame.sort_values(column, ascending=not descending, kind="stable")
    except TypeError as error:
        raise OptionError("sort", column, "a column whose values have an order") from error
    made.attrs.update(frame.attrs)
    return made


def _numbers(session: Session) -> str:
    ranks = session.ranks["rank"].dropna().tolist()
    return f"one of the session's ranks {', '.join(map(str, ranks[:40]))}"
