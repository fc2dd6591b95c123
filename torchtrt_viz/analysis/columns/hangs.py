"""Columns of the tables about what a Flight Recorder recorded, and about ranks that hang."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import count, ns, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["HANGS", "POSITIONS", "RECORDED"]

_GROUP = text("group", "process group: its name as recorded; missing: not recorded")
_DESC = text("group_desc", "what the program calls the group; missing: nothing")
_BACKEND = text("backend", "communication library: nccl, gloo, hccl, ...")
_OPERATION = text("operation", "all_reduce, all_gather, send, ...")
_SHAPES = "shapes of its {} tensors, as recorded: [[16], [4, 4]]; missing: not recorded"


def _ranks(name: str, meaning: str, title: str = "") -> Column:
    return Column(name, "object", f"tuple of ranks: {meaning}", title=title)


RECORDED = FrameSchema(
    "recorded_collectives",
    (
        count("record", "number of the entry in the recorder, from 0; NA: not recorded", "Int64"),
        _GROUP,
        _DESC,
        count("group_id", "number of the group on this rank; NA: not recorded", "Int64"),
        _BACKEND,
        _OPERATION,
        count("sequence", "number of the collective in its group, equal on all ranks", "Int64"),
        count(
            "p2p_sequence", "number of the send or receive in its group on this rank; 0 or NA: none", "Int64"
        ),
        count("operation_id", "number of the operation in its group, each of a batch counted", "Int64"),
        count("sender", "rank within the group that sends; NA: no send or receive", "Int64"),
        count("receiver", "rank within the group that receives; NA: no send or receive", "Int64"),
        Column("p2p", "boolean", "whether it is a send, a receive or a batch of them"),
        text("state", "scheduled, started or completed; gloo leaves all of them scheduled"),
        Column(
            "retired",
            "boolean",
            "whether the library is done with it, well or with an error; NA: not recorded",
        ),
        ns("created_unix_ns", "when the call enqueued it, Unix time; NA: not recorded", "Int64"),
        ns("started_unix_ns", "when the recorder found it started, Unix time; NA: not found", "Int64"),
        ns("completed_unix_ns", "when the recorder found it complete, Unix time; NA: not found", "Int64"),
        ns("device_ns", "time that it took on the device; NA: not timed", "Int64"),
        ns("timeout_ns", "its timeout; NA: not recorded", "Int64"),
        text("input_sizes", _SHAPES.format("input")),
        text("input_types", "element types of these: float32, ..."),
        text("output_sizes", _SHAPES.format("output")),
        text("output_types", "element types of these"),
        text(
            "source", "innermost line of the user's own program, file:line (function); missing: none recorded"
        ),
        text("stack", "all recorded frames, the innermost first, a line each; missing: none recorded"),
        text("thread", "thread that called it; missing: not recorded"),
        text("thread_name", "name of the thread; missing: not recorded"),
    ),
    "one row per entry of a Flight Recorder's dump, the latest first",
)

_SESSION = text("session", "id of the session; missing: nothing says it")

HANGS = FrameSchema(
    "session.hangs",
    (
        text("finding", "the row in a sentence"),
        text(
            "problem",
            "not joined (some ranks of the group have not called it), type, size, dtype (ranks called "
            "different things under one number), order (the same calls in another order), not completed (all "
            "joined, and it failed or timed out), no partner (a send or receive without its other side), no "
            "dump (a rank left no dump)",
        ),
        text(
            "certainty",
            "certain: the dumps record it; likely: it follows from how far the ranks got; possible: a dump "
            "is missing, or what would tell is not recorded",
        ),
        _SESSION,
        _GROUP,
        _DESC,
        _BACKEND,
        count("group_size", "ranks of the group; NA: not recorded", "Int64"),
        _OPERATION,
        count(
            "sequence",
            "number of the collective in its group; of a send or receive, between the two",
            "Int64",
        ),
        _ranks("waiting", "those that called it and did not get on"),
        _ranks("missing", "those whose dump does not have it"),
        _ranks("differing", "those that called something else than most", title="call something else"),
        _ranks("no_dump", "those of the group of which there is no dump", title="without a dump"),
        text("state", "what the recorder says of it on the ranks that wait: scheduled, started, ..."),
        text("sizes", "shapes of the tensors on the ranks that wait (most of them): inputs, then outputs"),
        text("types", "their element types"),
        text("found", "what the differing ranks called: operation, shapes and types"),
        text("source", "line of the user's program that called it; missing: no stack recorded"),
        text("stack", "the recorded frames of that call, the innermost first"),
        count(
            "last_sequence", "last collective of the group that the missing ranks called, the least", "Int64"
        ),
        text("last_operation", "its operation"),
        text("last_source", "line of the user's program that called that"),
        ns("since_unix_ns", "when the first rank called it, Unix time by that rank's clock", "Int64"),
        ns("timeout_ns", "its timeout; NA: not recorded", "Int64"),
        count(
            "held_by",
            "row of this table in which missing ranks wait themselves, of several the surest; NA: none",
            "Int64",
        ),
        text("why", "how it is known, and what is not"),
    ),
    "one row per collective in which ranks wait or disagree, causes before what follows from them",
)

POSITIONS = FrameSchema(
    "session.positions",
    (
        _SESSION,
        _GROUP,
        _DESC,
        _BACKEND,
        count("rank", "the rank", "Int64"),
        count("first", "first collective that its dump still has: the recorder is a ring", "Int64"),
        count("last", "last collective that it called", "Int64"),
        count("last_completed", "last one that is recorded as complete; NA: none", "Int64"),
        count("behind", "how many the rank that got furthest is ahead", "Int64"),
        _OPERATION,
        text("sizes", "shapes of the last call's tensors: inputs, then outputs"),
        text("types", "their element types"),
        text("state", "what the recorder says of it: scheduled, started, completed"),
        Column("retired", "boolean", "whether the library is done with it; NA: not recorded"),
        Column(
            "older",
            "boolean",
            "whether another rank has completed a collective that this dump does not have: it was written "
            "earlier",
        ),
        ns("since_unix_ns", "when the rank called it, Unix time by its clock", "Int64"),
        text("source", "line of the user's program that called it; missing: no stack recorded"),
        text("stack", "the recorded frames of that call, the innermost first"),
    ),
    "one row per process group and rank with a dump: its last collective",
)
