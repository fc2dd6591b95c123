"""One dump in plain values: process groups, their status, and the entries, of every version of the format.

=====  =====================================================================================================
2.x    groups by name, with description and ranks as text; ``collective_seq_id`` and ``p2p_seq_id``
1.2    groups by number, with a list of ranks; ``seq_id``
1.0    entries with a group's number, and no groups
none   the list of entries alone
=====  =====================================================================================================
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.flight_recorder.plain_pickle import Plain, read_plain
from torchtrt_viz.formats.io.json_values import text, whole
from torchtrt_viz.formats.io.lenient_json import parse_json
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

__all__ = ["Dump", "ProcessGroup", "read_dump"]

_EXPECTED = "a dict with the entries of a Flight Recorder, or a list of them"
_READ = ("version", "entries", "pg_config", "pg_status", "comm_lib_version", "nccl_version")
_LIST = re.compile(r"\[\s*(?:\d+\s*(?:,\s*\d+\s*)*)?\]")
_STATUS = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
_MAX_RANK = 2**31


@dataclass(frozen=True)
class ProcessGroup:
    """A process group as the dump describes it: ``ranks`` in the group's order, none where it lists none."""

    name: str
    desc: str
    ranks: tuple[int, ...] = ()


@dataclass
class Dump:
    """What a dump holds.

    Attributes
    ----------
    entries
        The entries, the oldest first.
    groups
        Process groups by the key that the dump gives them: a name, or (before 2.0) a number.
    status
        For each group's number the last collective that was enqueued, started and completed; -1 none.
    cut
        Whether its end is missing, and with it the latest entries.
    left_out
        What is no entry, by kind.
    unread
        Parts of the dump that are not read.
    """

    version: str | None = None
    library: str | None = None
    entries: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str | int, ProcessGroup] = field(default_factory=dict)
    status: dict[int, tuple[int | None, int | None, int | None]] = field(default_factory=dict)
    cut: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)


def read_dump(data: bytes, name: str, options: LoadOptions) -> Dump:
    """Read a dump.

    Parameters
    ----------
    name
        Label for messages.

    Raises
    ------
    TraceFormatError
        When it is no dump, or nothing of it is whole; with ``strict`` at the first damage.
    """
    pickled = data.startswith(b"\x80")
    plain = read_plain(data, name) if pickled else Plain(parse_json(data, name, options))
    dump = Dump(cut=plain.cut is not None or any(r.code == "truncated" for r in options.warnings))
    found = plain.value
    if isinstance(found, dict):
        _describe(found, dump)
        found = found.get("entries", [])
    elif not isinstance(found, list) or not any(_is_entry(each) for each in found):
        found = None
    if not isinstance(found, list) or not (found or dump.groups or dump.status or dump.version):
        raise TraceFormatError(
            "no dump of a Flight Recorder",
            path=name,
            expected=_EXPECTED,
            found=type(plain.value).__name__,
            hint="Dump it with torch.distributed's Flight Recorder (TORCH_FR_BUFFER_SIZE)",
        )
    cut = {id(each) for each in plain.unfinished}
    for number, each in enumerate(found, start=1):
        if id(each) in cut or (plain.cut is not None and number == len(found) and not _is_entry(each)):
            dump.left_out["cut"] += 1
        elif _is_entry(each):
            dump.entries.append(each)
        else:
            dump.left_out["no entry"] += 1
    _report(dump, plain, name, options)
    return dump


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and ("profiling_name" in value or "record_id" in value)


def _describe(found: dict[Any, Any], dump: Dump) -> None:
    """Take what stands beside the entries."""
    version = found.get("version")
    dump.version = None if version is None else str(version)[:32]
    library = text(found.get("comm_lib_version")) or text(found.get("nccl_version"))
    dump.library = library[:64] if library else None
    config = found.get("pg_config")
    for key, value in config.items() if isinstance(config, dict) else ():
        if not isinstance(key, (str, int)):
            continue
        if isinstance(value, dict):
            name = text(value.get("name"))
            dump.groups[key] = ProcessGroup(
                str(key) if name is None else name, text(value.get("desc")) or "", _ranks(value.get("ranks"))
            )
        else:
            dump.groups[_number(key)] = ProcessGroup(str(key), "", _ranks(value))
    status = found.get("pg_status")
    for key, value in status.items() if isinstance(status, dict) else ():
        number = _number(key)
        if isinstance(number, int) and isinstance(value, dict):
            last = [whole(_number(value.get(part)), -1, 2**63) for part in _STATUS]
            dump.status[number] = (last[0], last[1], last[2])
    for key, value in found.items():
        if key not in _READ and value:
            dump.unread[str(key)[:64]] += 1


def _number(value: Any) -> Any:
    """Return a number that JSON had to write as a text."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value) else value


def _ranks(value: object) -> tuple[int, ...]:
    """Return a group's ranks, which are a text in newer versions and a list in older ones."""
    if isinstance(value, str):
        if _LIST.fullmatch(value.strip()) is None:
            return ()
        value = [int(number) for number in re.findall(r"\d{1,10}", value)]
    if not isinstance(value, list):
        return ()
    ranks = [rank for rank in value if type(rank) is int and 0 <= rank < _MAX_RANK]
    return tuple(dict.fromkeys(ranks)) if len(ranks) == len(value) else ()


def _report(dump: Dump, plain: Plain, name: str, options: LoadOptions) -> None:
    if plain.cut is not None:
        options.repaired(
            Repair(
                "truncated",
                f"the dump ends in its middle ({plain.damage}): {len(dump.entries)} entries before are read, "
                "and the latest ones, which tell where a rank hangs, are missing",
                name,
                plain.cut,
            )
        )
    if dump.left_out["no entry"]:
        options.repaired(
            Repair(
                "not_a_record",
                "left out: no entry of a Flight Recorder",
                name,
                count=dump.left_out["no entry"],
            )
        )
