"""What is said about one thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass

from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["FINDINGS", "Finding"]

FINDINGS = FrameSchema(
    "doctor",
    (
        Column(
            "area",
            "text",
            "core, capture, notebook, export, remote, serving, cluster, agents, tensorrt or gpu",
        ),
        Column("name", "text", "the thing looked at"),
        Column(
            "state",
            "text",
            "ok, missing (optional, and not there in a form that can be used) or broken (there, or needed, "
            "and not working)",
        ),
        Column("detail", "text", "version, place, or what went wrong"),
        Column("cost", "text", "what cannot be done without it; empty when it is ok"),
        Column("remedy", "text", "what to do; empty when it is ok"),
    ),
    "one row per thing that the product needs or can use on this machine",
)


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    ``state`` is "ok", "missing" (optional, and not there in a form that can be used) or "broken" (there, or
    needed, and not working); ``cost`` says what cannot be done without it, ``remedy`` what to do.
    """

    area: str
    name: str
    state: str
    detail: str
    cost: str = ""
    remedy: str = ""
