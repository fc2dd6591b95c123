"""Columns of the tables that say things in words."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import ns, percent, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["EXPLAIN", "QUESTIONS", "SUMMARY"]

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
