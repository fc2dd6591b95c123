"""Columns by what they hold, so that a table says only what is its own."""

from __future__ import annotations

from dataclasses import replace

from torchtrt_viz.model.schema import Column

__all__ = ["DEVICE", "STREAM", "amount", "count", "modeled", "ns", "number", "percent", "rate", "text"]


def ns(name: str, meaning: str, dtype: str = "int64", title: str = "") -> Column:
    """Return a column of times."""
    return Column(name, dtype, meaning, "ns", title=title)


def percent(name: str, meaning: str, dtype: str = "Float64", title: str = "") -> Column:
    """Return a column of shares."""
    return Column(name, dtype, meaning, "%", title=title)


def count(name: str, meaning: str, dtype: str = "int64", title: str = "") -> Column:
    """Return a column of counts, or of row and other numbers that things have."""
    return Column(name, dtype, meaning, title=title)


def amount(name: str, meaning: str, dtype: str = "Int64") -> Column:
    """Return a column of bytes."""
    return Column(name, dtype, meaning, "byte")


def rate(name: str, meaning: str, unit: str = "10^9 byte/s", title: str = "") -> Column:
    """Return a column of amounts per time."""
    return Column(name, "Float64", meaning, unit, title=title)


def number(name: str, meaning: str, dtype: str = "Float64", title: str = "") -> Column:
    """Return a column of plain numbers."""
    return Column(name, dtype, meaning, title=title)


def text(name: str, meaning: str, title: str = "") -> Column:
    """Return a column of strings."""
    return Column(name, "text", meaning, title=title)


def modeled(column: Column) -> Column:
    """Return a column of what nobody observed in the trace itself."""
    return replace(column, modeled=True)


DEVICE = count("device", "device index; NA where the trace does not say", "Int64")
STREAM = text("stream", "label of the stream")
