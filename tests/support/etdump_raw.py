"""An ETDump as executorch's own reader gives it: a list of blocks of plain events, through flatc and JSON."""

from __future__ import annotations

from types import SimpleNamespace


def blocks(data: bytes) -> list[list[SimpleNamespace]]:
    """Events of each block: name (or delegate id), start, end, chain, instruction, delegate."""
    from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc

    out = []
    for run in deserialize_from_etdump_flatcc(data).run_data:
        events = []
        for event in run.events or []:
            e = event.profile_event
            events.append(
                SimpleNamespace(
                    name=e.name or e.delegate_debug_id_str,
                    delegate=e.delegate_debug_id_str,
                    start=e.start_time,
                    end=e.end_time,
                    chain=e.chain_index,
                    instruction=e.instruction_id,
                )
            )
        out.append(events)
    return out
