"""A small session on disk: two prefill and two decode ranks, with steps, collectives and requests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rank_traces import event, simple_events, tar_gz, trace_json, write

from torchtrt_viz.formats.session.manifest import CycleRecord, Manifest, RankRecord

ROLES = ("prefill", "prefill", "decode", "decode")
_GROUP = {
    "Collective name": "allreduce",
    "Process Group Name": "pg0",
    "Process Group Ranks": "[0, 1, 2, 3]",
    "Group size": 4,
    "In msg nelems": 1_000,
    "Out msg nelems": 1_000,
    "dtype": "Float",
}


def write_small_session(root: Path) -> Path:
    """Write the session below ``root`` and return its folder."""
    folder = root / "s1"
    for rank, role in enumerate(ROLES):
        meta = {"format": "torchtrt_viz.rank/1", "session_id": "s1", "rank": rank, "cycle": 0, "role": role}
        raw = trace_json(_events(rank, role), rank=rank, world_size=len(ROLES))
        members = {
            "rank.json": json.dumps({**meta, "host": "node-a"}).encode(),
            "raw/trace.json": raw,
        }
        inventory = [
            {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
        ]
        document = {"format": "torchtrt_viz.inventory/1", "files": inventory}
        members["inventory.json"] = json.dumps(document).encode()
        write(folder / f"rank-{rank:05d}" / "cycle-00000.tar.gz", tar_gz(members))
    ranks = [
        RankRecord(
            rank,
            role=role,
            host="node-a",
            state="collected",
            cycles=[CycleRecord(0, "published", f"rank-{rank:05d}/cycle-00000.tar.gz")],
        )
        for rank, role in enumerate(ROLES)
    ]
    write(folder / "manifest.json", Manifest("s1", "complete", ranks=ranks).to_json())
    return folder


def _events(rank: int, role: str) -> list[dict[str, Any]]:
    """Steps and operators; ranks enter the collectives one after the other, the last rank last."""
    events = simple_events(1.0 + 0.2 * rank)
    for number in range(2):
        at = 1_000.0 * number
        transfer = "kv_send" if role == "prefill" else "kv_recv"
        events.append(event(f"{role}[request=r{number} transfer=x{number} tokens=4]", at + 300, 100))
        events.append(event(f"{transfer}[transfer=x{number}]", at + (420 if role == "prefill" else 250), 20))
        events.append(event("gloo:all_reduce", at + 450 + rank, 40 - rank, tid=8))
        events.append(
            event("ncclDevKernel_AllReduce_Sum_f32", at + 600 + rank, 50 - rank, "kernel", tid=20,
                  device=0, stream=20, **_GROUP)
        )  # fmt: skip
    return events
