"""Columns of what a capture says of itself."""

from __future__ import annotations

from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["CAPTURE_SUMMARY"]

CAPTURE_SUMMARY = FrameSchema(
    "capture.summary",
    (
        Column("item", "text", "what is counted or measured, or `not captured`"),
        Column("value", "object", "the number (or text); NA where there is none", "as in the unit column"),
        Column("unit", "text", "ms, or empty"),
        Column("note", "text", "how it was measured, what went wrong, or what to do; empty without need"),
    ),
    "one row per fact about a capture: what was recorded, what it cost, what could not be reached",
)
