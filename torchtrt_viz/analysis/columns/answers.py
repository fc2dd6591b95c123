"""Columns of the tables that say things in words."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import count, ns, percent, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["EXPLAIN", "QUESTIONS", "REPAIRS", "SUMMARY", "VERDICT"]

SUMMARY = FrameSchema(
    "summary",
    (
        text("section", "capture, host, gpu, delegates, engines or warnings"),
        text("item", "what is counted"),
        Column(
            "value", "Int64", "the number; NA when nothing of the sort was collected", "as in the unit column"
        ),
        text("unit", "ns, or what is counted"),
        text("note", "how to read it, or the text where it is no number; empty when it needs no words"),
    ),
    "one row per total of a capture; host and GPU figures stand in sections of their own and are never added",
)

QUESTIONS = FrameSchema(
    "questions",
    (
        text("question", "the question"),
        text("answer", "the answer in a sentence, with numbers"),
        text("measured", "yes, partly or no: whether the capture holds what the answer needs"),
        Column(
            "values",
            "object",
            "the numbers, a mapping of names to values; times in ns, host and GPU never added",
        ),
        text("source", "the call that gives the table behind the answer"),
        text("missing", "what could not be measured in this capture; empty when nothing is missing"),
        text("how", "how to measure it; empty when nothing is missing"),
    ),
    "one row per question that a capture of a deployed model has to answer",
)

EXPLAIN = FrameSchema(
    "explain",
    (
        text("finding", "a sentence with its numbers"),
        ns("impact_ns", "the time at stake, in `domain`; not the time that can be won", "Float64"),
        percent("impact_pct", "in percent of what `of` names"),
        text(
            "of",
            "the whole that the share is of: the device's span, the methods' time, the engine's layers, ...",
        ),
        text("domain", "host or gpu; findings of different domains overlap in time and are not added"),
        text("source", "the call that gives the table behind the finding"),
        text("remedy", "what usually helps"),
    ),
    "one row per finding, the largest time at stake against the length of the capture first",
)

VERDICT = FrameSchema(
    "verdict",
    (
        count("number", "place in the list, from 1"),
        text("finding", "the finding in a few words"),
        text("evidence", "what proves it, a sentence with numbers, shares and units"),
        ns(
            "could_save_ns",
            "by how much the capture could be shorter, at most; NA where it cannot be said. Findings "
            "overlap: what they could save is not added",
            "Float64",
            title="could save",
        ),
        percent(
            "could_save_pct",
            "could_save_ns in percent of the capture's length; without a time axis of what `of` names",
            title="of the window",
        ),
        text("basis", "what could_save_ns rests on, or why it is NA"),
        ns("at_stake_ns", "the time that the finding is about, in `domain`", "Float64", title="at stake"),
        percent("at_stake_pct", "in percent of what `of` names", title="share"),
        text("of", "the whole that the share is of", title="of"),
        text("domain", "host or gpu; findings of different domains overlap in time and are not added"),
        text("kind", "what sort of finding: idle, launches, waiting, kernel, layer, doubt, ..."),
        count("spans", "spans that prove it; NA: it is about no single spans", "Int64"),
        ns(
            "start_ns",
            "where to look on the timeline, on the trace's base; NA without a place on the axis",
            "Int64",
        ),
        ns("end_ns", "end of that stretch", "Int64"),
        text("remedy", "what usually helps"),
        text(
            "frame",
            "an expression that makes the table which proves the finding; `trace` is the trace in it",
        ),
    ),
    "one row per finding, the most time that could be saved first, those of which it cannot be said after "
    "them",
)

REPAIRS = FrameSchema(
    "repairs",
    (
        text("code", "short stable name of the kind of repair"),
        text("message", "what was mended, left out or could not be known"),
        text("path", "file, or `archive!member`; missing: it is about no single file"),
        count("offset", "byte offset in the uncompressed content; NA where it has no single place", "Int64"),
        count("count", "how often it was done"),
    ),
    "one row per warning from loading: what was mended, left out or could not be known",
)
