"""Which method of an ETRecord a run of an ETDump executed, and whether the two belong together at all.

An ETDump names neither program nor method. A run fits a method when every instruction that called a kernel
is one of the method's and not a delegate, every instruction that called a delegate is one of its delegates,
a run that ended has passed every instruction (unless it jumped), and most kernels' names and delegates'
identifiers agree with those recorded for their instructions. Nothing is mapped on a weaker ground. Programs
of one delegate that recorded no identifiers are all alike to this test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchtrt_viz.formats.etdump.dump import Events
from torchtrt_viz.formats.etdump.etrecord import ETRecord, Method
from torchtrt_viz.formats.etdump.names import delegate_debug_id, group
from torchtrt_viz.formats.etdump.runs import Runs
from torchtrt_viz.model.repair import Repair

__all__ = ["fit", "match_methods"]

OPERATOR_CALL, DELEGATE_CALL, CONTROL, KERNEL, FIRST_DELEGATE_ROLE = 2, 3, 4, 5, 7  # rows of ROLES
_JUMP = "JF_CALL"


@dataclass(frozen=True)
class _Seen:
    """What a run shows of its method."""

    operators: frozenset[int]
    delegates: frozenset[int]
    kernels: frozenset[tuple[int, str]]
    identifiers: dict[int, frozenset[str]]  # what each delegate logged
    whole: bool  # it ended, and logged every instruction that it passed


def match_methods(
    record: ETRecord, runs: Runs, events: Events, strings: list[str]
) -> tuple[set[int], list[Repair]]:
    """Enter the methods of the record into ``runs``; return the runs that it may explain, and what is amiss.

    Runs whose method was known already are only checked.
    """
    repairs: list[Repair] = []
    if not record.mapped:
        repairs.append(
            Repair(
                "etrecord_without_maps",
                "the ETRecord holds no map of instructions (its writer failed, or is too old): "
                "nothing can be mapped",
                record.path,
            )
        )
        return set(), repairs
    executions = np.flatnonzero(runs.iteration >= 0)
    explained: set[int] = set()
    unmatched = ambiguous = 0
    found: dict[tuple[int, int, bool], list[str]] = {}
    for run in executions.tolist():
        key = (int(runs.shape[run]), int(runs.method[run]), bool(runs.executed[run] >= 0))
        if key not in found:
            found[key] = _candidates(record, runs, run, _look(events, runs, run, strings))
        fitting = found[key]
        if len(fitting) == 1:
            runs.method[run] = runs.method_code(fitting[0])
            explained.add(run)
        elif fitting:
            ambiguous += 1
        elif runs.count[run]:
            unmatched += 1
    if unmatched and not explained and not ambiguous:
        repairs.append(
            Repair(
                "wrong_etrecord",
                "the ETRecord belongs to another program: no run's instructions fit "
                f"{_listed(record)}; operator types and source lines are left out",
                record.path,
            )
        )
    elif unmatched:
        repairs.append(
            Repair(
                "etrecord_unmatched_runs",
                f"runs that fit no method of the ETRecord ({_listed(record)}) are not mapped",
                record.path,
                count=unmatched,
            )
        )
    if ambiguous:
        repairs.append(
            Repair(
                "ambiguous_method",
                "runs that fit several methods of the ETRecord are not mapped: the dump names no methods, "
                "and nothing tells them apart (the capture's sidecar would)",
                record.path,
                count=ambiguous,
            )
        )
    return explained, repairs


def _listed(record: ETRecord) -> str:
    return "method " + ", ".join(repr(name) for name in sorted(record.methods))


def _candidates(record: ETRecord, runs: Runs, run: int, seen: _Seen) -> list[str]:
    known = runs.method_name(run)
    names = sorted(record.methods) if known is None else [known]
    return [name for name in names if name in record.methods and fit(seen, record.methods[name])]


def _look(events: Events, runs: Runs, run: int, strings: list[str]) -> _Seen:
    rows = slice(int(runs.first[run]), int(runs.first[run] + runs.count[run]))
    role, instruction, name = events.role[rows], events.instruction[rows], events.name[rows]
    kernels = np.flatnonzero(role == KERNEL)
    jumps = any(strings[code] == _JUMP for code in np.unique(name[role == CONTROL]).tolist())
    operators = frozenset(instruction[role == OPERATOR_CALL].tolist())
    delegates = frozenset(instruction[role == DELEGATE_CALL].tolist())
    logged = bool(operators or delegates)
    if not logged:  # told to record methods only, the runtime leaves the delegates' own events
        delegates = frozenset(instruction[(role >= FIRST_DELEGATE_ROLE) & (events.chain[rows] >= 0)].tolist())
    return _Seen(
        operators,
        delegates,
        kernels=frozenset(
            (int(instruction[i]), strings[int(name[i])].removeprefix("native_call_")) for i in kernels
        ),
        identifiers=_identifiers(events, rows, strings),
        whole=logged and bool(runs.executed[run] >= 0) and not jumps,
    )


def _identifiers(events: Events, rows: slice, strings: list[str]) -> dict[int, frozenset[str]]:
    mine = np.flatnonzero((events.role[rows] >= FIRST_DELEGATE_ROLE) & (events.chain[rows] >= 0)) + rows.start
    found: dict[int, set[str]] = {}
    _, first = group([events.instruction[mine], events.delegate_id[mine], events.delegate_name[mine]])
    for row in mine[first].tolist():
        identifier = delegate_debug_id(events, row, strings)
        found.setdefault(int(events.instruction[row]), set()).add(str(identifier))
    return {instruction: frozenset(identifiers) for instruction, identifiers in found.items()}


def fit(seen: _Seen, method: Method) -> bool:
    """Tell whether a run can have executed a method."""
    passed = seen.operators | seen.delegates
    if not passed:
        return False
    kernels = method.instructions.keys() - method.delegates.keys()
    if not (seen.operators <= kernels and seen.delegates <= method.delegates.keys()):
        return False
    if seen.whole and not (kernels | method.delegates.keys()) <= passed:
        return False
    agree = compared = 0
    for instruction, kernel in seen.kernels:
        nodes = method.find(method.instructions.get(instruction, ()))
        if nodes:
            compared += 1
            agree += any(_operator(node.op) == _operator(kernel, out=True) for node in nodes)
    for instruction, identifiers in seen.identifiers.items():
        known = method.delegates[instruction].handles if instruction in method.delegates else {}
        if known:  # a delegate that recorded its identifiers logs at least one of them
            compared += 1
            agree += not identifiers.isdisjoint(known)
    return 2 * agree >= compared


def _operator(name: str, out: bool = False) -> str:
    """Return an operator's name without namespace and overload."""
    parts = name.rsplit("::", 1)[-1].split(".")
    if out or len(parts) < 2:
        return parts[0].rstrip("_")
    return parts[-2].rstrip("_")
