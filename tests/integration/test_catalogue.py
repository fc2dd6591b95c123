"""The registry of tables says what tables are: every frame has the columns and dtypes that it documents."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from flight_recorder_dumps import Job
from ncu_pages import raw, said
from proton_trees import document, kernel, scope
from rank_traces import event, trace_json, write
from small_session import write_small_session
from timeline_traces import model_trace
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz import analysis, schema
from torchtrt_viz.analysis.catalogue import FRAMES, SESSION_TABLES, TABLES, shown_in, table
from torchtrt_viz.analysis.session.imbalance import collective_totals, step_imbalance
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.schema import EVENTS, FrameSchema

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
# Not of one trace: their own tests are below.
OTHERS = (
    *("compare", "regressions", "compare_structure", "structure_summary", "series", "series_values"),
    *("engine_diff", "collective_skew"),
)
NO_FRAME = ("iteration_of", "plan_graph")
OF_ONE_TRACE = [name for name in analysis.__all__ if name not in (*OTHERS, *NO_FRAME)]


def check(frame: pd.DataFrame, documented: FrameSchema, optional: tuple[str, ...] = ()) -> None:
    """Columns in order, and their dtypes, are as documented."""
    names = [name for name in documented.names if name in frame or name not in optional]
    assert list(frame.columns) == names
    for name in names:
        column = documented[name]
        assert column.fits(frame[name].dtype), f"{documented.name}.{name} is {frame[name].dtype}"
        if column.dtype == "text":
            assert all(value is None or value != value or isinstance(value, str) for value in frame[name])
        if column.unit == "ns":
            assert name.endswith("_ns") or name in ("ns", "at")


def small() -> tv.Trace:
    """What the other traces lack: memory, copies with sizes, a graph launch, layers of no engine."""
    b = Builder()
    thread, stream = b.track("thread 1", process=1, thread=1), b.stream(7)
    b.span("ProfilerStep#0", 0, 900, thread, "step")
    b.span(
        "aten::mm", 10, 300, thread, args={"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
    )
    b.span("cudaGraphLaunch", 50, 20, thread, "runtime", correlation=5)
    for start in (100, 150):
        b.span("gemm", start, 40, stream, "kernel", correlation=5)
    b.span("cudaMemcpyAsync", 320, 30, thread, "runtime", correlation=6)
    b.span("Memcpy HtoD (Pinned -> Device)", 400, 50, stream, "memcpy", correlation=6, args={"bytes": 4096})
    for at, change in ((20, 512), (60, -512), (70, 1024)):
        total = {"Bytes": change, "Device Type": 0, "Device Id": -1}
        b.instant("[memory]", at, thread, "memory", **total)
        b.counter("allocated memory/cpu", at, 2048 + change, thread, "B")
    return b.build(
        warnings=[Repair("truncated", "the last event is cut off", "run.json", 4096)],
        deviceProperties=[{"name": "NVIDIA A100-SXM4-80GB"}],
    )


def _hanging() -> Job:
    """Two ranks, one of which has not joined the last collective."""
    job = Job(2)
    job.call("all_reduce")
    job.call("all_reduce", ranks=[0], state="started")
    return job


def empty() -> tv.Trace:
    return tv.Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({}))


@pytest.fixture(scope="module")
def traces() -> dict[str, tv.Trace]:
    samples = ("eager.pt.trace.json", "demo_capture", "trex")
    return {
        "model": model_trace(steps=2, blocks=2),
        "small": small(),
        "empty": empty(),
        "dump": tv.load(pickle.dumps(_hanging().document(0), 2)),
        "tree": tv.load(json.dumps(document(scope("layer", kernel("matmul", 70, 2)))).encode()),
        "page": tv.load(raw([("gpu__time_duration.sum", "ns")], [(said(0, "k"), ["5"])]).encode()),
        **{name: tv.load(SAMPLES / name) for name in samples},
    }


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tv.Session:
    return tv.load(write_small_session(tmp_path_factory.mktemp("session")))


@pytest.fixture(scope="module")
def bare_session(tmp_path_factory: pytest.TempPathFactory) -> tv.Session:
    """Two ranks that recorded nothing that any table is about."""
    root = tmp_path_factory.mktemp("bare")
    for rank in range(2):
        events = [event("work", 1, 2, "python_function")]
        write(root / f"rank-{rank}.pt.trace.json", trace_json(events, rank=rank, world_size=2))
    return tv.load(root)


# -- frames ----------------------------------------------------------------------------------------------


def test_the_events_of_a_trace(traces: dict[str, tv.Trace]) -> None:
    for trace in traces.values():
        for documented in EVENTS:
            frame = getattr(trace, documented.name)
            assert list(frame.columns) == documented.names
            for column in documented.columns:
                dtype = str(frame[column.name].dtype)
                # a sum over calls has no start: the columns are nullable then
                no_start = column.name in ("start_ns", "t_ns") and dtype == "Int64"
                assert column.fits(dtype) or no_start, column


@pytest.mark.parametrize("name", OF_ONE_TRACE)
def test_frames_of_one_trace(name: str, traces: dict[str, tv.Trace]) -> None:
    function = getattr(analysis, name)
    rows = 0
    for trace in traces.values():
        frame = function(trace)
        check(frame, FRAMES[name])
        rows += len(frame)
    assert rows or name in ("engine_lint", "reformats"), "no trace here gives it a row"


def test_frames_with_options(traces: dict[str, tv.Trace]) -> None:
    model = traces["model"]
    for frame in (model.operators(by=["shape", "module"]), traces["empty"].operators(by=["shape", "module"])):
        assert list(frame.columns) == ["name", "shape", "module", *FRAMES["operators"].names[1:]]
        check(frame.drop(columns=["shape", "module"]), FRAMES["operators"])
    by_kernel = analysis.launch_stats(model, by="name")
    check(by_kernel.rename(columns={"name": "launched_by"}), FRAMES["launch_stats"])
    check(analysis.critical_path_summary(model, iteration=1), FRAMES["critical_path_summary"])
    check(analysis.idle_gaps(model, level="device"), FRAMES["idle_gaps"])
    check(analysis.temporal_breakdown(model, per_device=False), FRAMES["temporal_breakdown"])
    check(analysis.operator_roofline(model, device="A100"), FRAMES["operator_roofline"])


def test_frames_of_several_traces(traces: dict[str, tv.Trace]) -> None:
    for trace in (traces["model"], traces["trex"], traces["empty"]):
        comparison = tv.compare(trace, trace)
        check(comparison, FRAMES["compare"])
        check(analysis.regressions(comparison), FRAMES["regressions"])
        structure = tv.compare_structure(trace, trace)
        check(structure, FRAMES["compare_structure"])
        check(analysis.structure_summary(structure), FRAMES["structure_summary"])
        check(analysis.series_values([trace] * 2), FRAMES["series_values"])
        check(analysis.series([trace] * 5, levels=["layer"]), FRAMES["series"])
    trex = traces["trex"]
    engines = trex.layers()["engine"].drop_duplicates().tolist()
    check(analysis.engine_diff(trex, trex, engine_a=engines[0], engine_b=engines[1]), FRAMES["engine_diff"])


def test_frames_of_sessions(session: tv.Session, bare_session: tv.Session) -> None:
    overviews = {}
    for one in (session, bare_session):
        held = [trace for _, trace in one.traces()]  # a session forgets traces that nobody holds
        assert held
        made = overviews[one] = one.overview()
        split = ("session", "role")
        check(one.ranks, FRAMES["session.ranks"])
        check(one.operators(per_rank=True), FRAMES["session.operators(per_rank=True)"])
        # each of the others reads every rank again: where nothing was recorded, the tables below say the same
        others = ("check", "operators", "steps", "collectives", "stragglers", "requests")
        for name in ("request_events", "summary", "explain", *(others if one is session else ())):
            documented = FRAMES["session.ranks" if name == "check" else f"session.{name}"]
            check(getattr(one, name)(), documented, optional=split if name == "operators" else ())
        for name, entry in SESSION_TABLES.items():
            frame = getattr(made, name)
            if name != "by_role":
                check(frame, entry.schema, optional=split)
        for name in ("totals", "strips", "ranks"):
            check(getattr(made, name), FRAMES[f"session.{name}"])
        check(step_imbalance(made.steps), FRAMES["session.step_imbalance"])
        check(collective_totals(made.collectives), FRAMES["session.collective_totals"])
        check(analysis.collective_skew(one), FRAMES["collective_skew"])
    made = overviews[session]
    by_role = made.by_role
    assert by_role.columns.tolist() == [
        *("name", "prefill_self_pct", "prefill_call_ns", "prefill_calls"),
        *("decode_self_pct", "decode_call_ns", "decode_calls"),
    ]
    assert overviews[bare_session].by_role.columns.tolist() == FRAMES["session.by_role"].names
    of_dumps = ("hangs", "positions")
    for name in SESSION_TABLES:
        assert len(getattr(made, name)) or name in of_dumps, "a table without rows"


def test_frames_of_sessions_of_dumps(tmp_path: Path) -> None:
    session = tv.load(_hanging().write(tmp_path))
    assert isinstance(session, tv.Session)
    made = session.overview()
    for name in ("hangs", "positions"):
        check(getattr(session, name)(), FRAMES[f"session.{name}"])
        assert len(getattr(made, name))
    check(session.explain(), FRAMES["session.explain"])


def test_the_machines_own_rows(monkeypatch) -> None:
    from dataclasses import fields

    from torchtrt_viz.doctor import FINDINGS, Finding, examine, programs
    from torchtrt_viz.runtime.operator_owner import Owner

    # a process of its own that imports torch: integration/test_cli.py has it
    monkeypatch.setattr(programs, "find_owner", lambda: Owner("torchtrt_viz"))
    assert FINDINGS.names == [field.name for field in fields(Finding)]
    assert {finding.state for finding in examine()} <= {"ok", "missing", "broken"}


# -- the schema that users see ---------------------------------------------------------------------------


def test_every_frame_is_listed_and_describes_itself() -> None:
    listed = schema.frames()
    assert listed.columns.tolist() == ["name", "call", "columns", "meaning"]
    assert listed["name"].is_unique
    assert listed["meaning"].str.len().min() > 10
    for row in listed.itertuples():
        described = schema.table(row.name).describe()
        assert described.columns.tolist() == ["name", "dtype", "unit", "meaning"]
        assert len(described) == row.columns
        assert described["name"].is_unique
        assert described["meaning"].ne("").all()
        assert described["dtype"].ne("").all()
        assert described.loc[described["name"].str.endswith("_ns"), "unit"].eq("ns").all()
        assert described.loc[described["name"].str.endswith("_pct"), "unit"].eq("%").all()
        assert described.loc[described["name"].str.endswith("_bytes"), "unit"].eq("byte").all()


def test_every_analysis_is_listed() -> None:
    known = set(schema.frames()["name"])
    assert set(analysis.__all__) - known == set(NO_FRAME)
    for owner, prefix in ((tv.Trace, ""), (tv.Session, "session.")):
        for name in ("operators", "summary", "explain"):
            assert getattr(owner, name).returns_frame is FRAMES[prefix + name]


def test_an_unknown_frame_is_refused_with_what_is_near() -> None:
    with pytest.raises(OptionError, match=r"near it: .*operators"):
        schema.table("operator")


def test_the_calls_that_are_listed_exist() -> None:
    for name, call in schema.frames().set_index("name")["call"].items():
        head, _, rest = str(call).partition(".")
        attribute = rest.split("(")[0].split(".")[0]
        owners: dict[str, object] = {"trace": empty(), "session": tv.Session, "analysis": analysis}
        if head in owners:
            assert hasattr(owners[head], attribute), (name, call)


# -- the registry ----------------------------------------------------------------------------------------


def test_each_table_is_a_method_and_computed_where_it_says(traces: dict[str, tv.Trace]) -> None:
    trace = traces["model"]
    for name, entry in TABLES.items():
        # some show themselves in words: frames all the same
        pd.testing.assert_frame_equal(entry(trace), getattr(trace, name)(), check_frame_type=False)
        assert entry.schema is FRAMES[name]
        assert set(entry.brief) <= set(entry.schema.names)
        if entry.spans is not None:
            assert entry.spans.column in entry.schema.names
            assert entry.spans.field in schema.SPANS.names
    pd.testing.assert_frame_equal(
        table(trace, "operators", top=2).reset_index(drop=True), trace.operators(top=2)
    )
    with pytest.raises(OptionError, match=r"one of questions, .*operators"):
        table(trace, "nonsense")


def test_each_session_table_is_computed_where_it_says(session: tv.Session) -> None:
    held = [trace for _, trace in session.traces()]
    assert len(held) == 4
    made = session.overview()
    for name, entry in SESSION_TABLES.items():
        if entry.function:
            pd.testing.assert_frame_equal(
                entry(session).reset_index(drop=True), getattr(made, name).reset_index(drop=True)
            )


def test_views_show_what_the_registry_says(traces: dict[str, tv.Trace]) -> None:
    from torchtrt_viz.report.html import page
    from torchtrt_viz.report.static_html import static_text

    trace = traces["model"]
    text = page(trace)
    written = [name for name in shown_in("report") if f'id="{name}"' in text]
    assert written == [name for name, entry in shown_in("report").items() if len(entry(trace))]
    picture = static_text(trace)
    drawn = [name for name, entry in shown_in("picture").items() if entry.title in picture]
    assert drawn == ["operators", "kernels", "layers"]  # it has no launches of graphs


def test_the_explorer_shows_what_the_registry_says(traces: dict[str, tv.Trace]) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    from torchtrt_viz.widgets.explore import Explorer

    assert sorted(Explorer(traces["model"]).tables) == sorted(shown_in("explorer"))


def test_titles_say_on_which_side_time_was_spent() -> None:
    from torchtrt_viz.report.columns import title

    assert title("self_ns", "operators") == "host self"
    assert title("total_ns", "kernels") == "GPU sum"
    assert title("calls", "operators") == "calls"
    assert title("wait_ns", "session.collective_totals") == "waited, all ranks"
    assert title("anything_ns") == "anything"
    for name in ("operators", "kernels"):
        for column in FRAMES[name].columns:
            if column.unit == "ns":
                side = "host" if name == "operators" and not column.name.startswith("device") else "GPU"
                assert title(column.name, name).startswith(side)


@pytest.mark.parametrize("make", [lambda: FRAMES["operators"], lambda: FRAMES["kernel_types"]])
def test_an_empty_frame_gets_its_dtypes(make: Callable[[], FrameSchema]) -> None:
    documented = make()
    check(documented.typed(pd.DataFrame(columns=documented.names)), documented)
    whole = documented.typed(pd.DataFrame({"unknown": np.zeros(2)}))
    assert whole["unknown"].dtype == "float64"
