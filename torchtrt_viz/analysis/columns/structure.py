"""Columns of two runs aligned by their structure."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import count, ns, number, percent, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["COMPARE_STRUCTURE", "STRUCTURE_SUMMARY"]

CHANGES = ("same", "renamed", "moved", "fused", "split", "added", "lost")
MATCHES = ("exact", "family", "similar", "position", "order", "elsewhere", "listed", "composed", "none")

_CHANGE = Column(
    "change",
    "category",
    "same; renamed (another name for the same thing: another maker's kernel); moved (to another place of the "
    "tree, or among its siblings); fused (several of a are fewer in b); split (the reverse); added (only in "
    "b); lost (only in a)",
    categories=CHANGES,
)


def _domain(domain: str, words: str) -> tuple[Column, ...]:
    title = "GPU" if domain == "gpu" else "host"
    return (
        ns(
            f"a_{domain}_mean_ns",
            f"{words} per iteration of the first run in which it ran, warm-up left out, the extreme tenths "
            "drawn in; of the whole run where either run has no iterations; NA without any",
            "Float64",
        ),
        ns(f"b_{domain}_mean_ns", "the same of the second run", "Float64"),
        ns(
            f"{domain}_delta_ns",
            f"b_{domain}_mean_ns less a_{domain}_mean_ns, none counted as 0; NA where neither has any",
            "Float64",
            title=f"{title} difference",
        ),
        percent(
            f"{domain}_change_pct",
            "the same in percent of a; positive is slower; NA where one of them has none",
            title=f"{title} change",
        ),
        percent(f"{domain}_low_pct", "lower end of its confidence interval; NA with fewer than two samples"),
        percent(f"{domain}_high_pct", "upper end of its confidence interval; NA with fewer than two samples"),
        text(
            f"{domain}_verdict",
            "slower, faster, same, unclear, added or removed, as in `compare`; missing where neither has any",
            title=f"{title} verdict",
        ),
        number(
            f"{domain}_p_value",
            "corrected for all rows and both domains (Holm); NA without a test: fewer than three iterations, "
            "or less than a thousandth of the domain's time",
        ),
    )


COMPARE_STRUCTURE = FrameSchema(
    "compare_structure",
    (
        _CHANGE,
        text(
            "kind",
            "thread, module, method, delegate, phase, layer, operator, annotation, communication, kernel, "
            "memcpy, memset or collective (the last four run on devices); of a, or of b where a has none",
        ),
        text("a_name", "its name in the first run, [n] the n-th of that name there; missing: not there"),
        text("b_name", "its name in the second run; missing: not there"),
        ns("a_host_ns", "host time of its own in the whole first run; NA without any", "Int64", "host, a"),
        ns("b_host_ns", "the same of the second run", "Int64", "host, b"),
        ns(
            "a_gpu_ns",
            "durations of the device work that is this row's own, in the whole first run (not wall time); NA "
            "without any",
            "Int64",
            "GPU, a",
        ),
        ns("b_gpu_ns", "the same of the second run", "Int64", "GPU, b"),
        *_domain("gpu", "durations of device work"),
        *_domain("host", "host time"),
        Column(
            "match",
            "category",
            "how the two were found: exact (same name and place), family (a name of the same family there), "
            "similar (most words of the name, or most of what is inside), position (kernels of one operator, "
            "the only module there), order (another place, same order of execution), elsewhere (an identical "
            "subtree anywhere), listed (its name lists the others), composed (known to replace them), none",
            categories=MATCHES,
        ),
        text("why", "the same in words"),
        text("a_path", "what encloses it in the first run, from the outside in"),
        text("b_path", "what encloses it in the second run"),
        count("places", "places in this row, which differ in numbers only; 1 with `merge=False`"),
        count("depth", "levels of the tree above it, in a, or in b where a has none"),
        count(
            "a_nodes", "nodes of the first run's tree in this row: what is added or lost as a whole is one"
        ),
        count("b_nodes", "nodes of the second run's tree"),
        count("a_calls", "calls, or pieces of device work; of the outermost node of several"),
        count("b_calls", "the same of the second run"),
        count("a_samples", "iterations of the first run behind the test"),
        count("b_samples", "iterations of the second run behind the test"),
        ns("a_host_total_ns", "host time with all that is inside; NA without any", "Int64"),
        ns("b_host_total_ns", "the same of the second run", "Int64"),
        ns("a_gpu_total_ns", "device work that was launched in it or inside; NA without any", "Int64"),
        ns("b_gpu_total_ns", "the same of the second run", "Int64"),
    ),
    "one row per node of the tree of modules, operators and kernels that both runs have, per group of nodes "
    "that was fused or split, and per part of the tree that only one of them has",
)

STRUCTURE_SUMMARY = FrameSchema(
    "structure_summary",
    (
        _CHANGE,
        count("rows", "rows of the comparison"),
        ns("a_gpu_ns", "durations of their device work in the first run; NA without any", "Int64", "GPU, a"),
        ns("b_gpu_ns", "the same of the second run", "Int64", "GPU, b"),
        ns("a_host_ns", "their host time in the first run; NA without any", "Int64", "host, a"),
        ns("b_host_ns", "the same of the second run", "Int64", "host, b"),
    ),
    "one row per kind of change that occurs",
)
