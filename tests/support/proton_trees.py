"""Trees as Triton's Proton writes them, and a plain walk over one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

__all__ = ["document", "kernel", "random_tree", "scope", "walk"]

DEVICES = {"CUDA": {"0": {"arch": "90", "num_sms": 132, "clock_rate": 1980000}}}


def kernel(name: str, time_ns: Any, count: Any = 1, *children: Any, **metrics: Any) -> dict[str, Any]:
    """A node with a time of its own."""
    on = {"device_id": "0", "device_type": "CUDA"}
    said = {"count": count, "time (ns)": time_ns, **on, **metrics}
    return {"children": list(children), "frame": {"name": name, "type": "function"}, "metrics": said}


def scope(name: str, *children: Any, **metrics: Any) -> dict[str, Any]:
    """A node without one."""
    return {"children": list(children), "frame": {"name": name, "type": "function"}, "metrics": metrics}


def document(*children: Any) -> list[Any]:
    """A whole file."""
    return [scope("ROOT", *children, **{"count": 0, "time (ns)": 0}), DEVICES]


def random_tree(rng: random.Random, depth: int = 5) -> Any:
    """Scopes, Python frames and kernels, some of which hold others."""
    children = [random_tree(rng, depth - 1) for _ in range(rng.randrange(4))] if depth else []
    if not children or rng.random() < 0.2:
        name = rng.choice(["matmul", "add", "Memcpy HtoD", "ncclDevKernel_AllReduce"])
        return kernel(name, rng.randrange(10**6), rng.randrange(1, 9), *children)
    return scope(rng.choice(["layer", "attention", "/a/b.py:forward@12", "layer"]), *children)


def walk(node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield path, own time and count of each node."""
    here = (*path, node["frame"]["name"])
    metrics = node["metrics"]
    yield here, metrics.get("time (ns)", 0), metrics.get("count", 0)
    for child in node["children"]:
        yield from walk(child, here)


def sums(document: list[Any]) -> tuple[Counter[str], Counter[str], Counter[tuple[str, ...]]]:
    """Return time and count by name, and inclusive time by path (without the root)."""
    time: Counter[str] = Counter()
    count: Counter[str] = Counter()
    inclusive: Counter[tuple[str, ...]] = Counter()
    for path, own, number in walk(document[0]):
        if number:
            time[path[-1]] += own
            count[path[-1]] += number
        for end in range(2, len(path) + 1):
            inclusive[path[1:end]] += own
    return time, count, inclusive
