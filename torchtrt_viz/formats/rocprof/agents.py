"""What rocprofiler says of GPUs, under the names that torch.profiler has for the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchtrt_viz.formats.rocprof.json_columns import records_of

__all__ = ["device_of"]


def device_of(number: int, name: str, agent: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a GPU; ``agent`` is its record, as JSON has it."""
    banks = records_of(agent.get("mem_banks"))[0]
    memory = sum(size for bank in banks if type(size := bank.get("size_in_bytes")) is int)
    found = {
        "id": number,
        "name": name,
        "totalGlobalMem": memory or None,
        "numSms": agent.get("cu_count"),
        "warpSize": agent.get("wave_front_size"),
        "maxThreadsPerBlock": agent.get("workgroup_max_size"),
        "gcnArchName": agent.get("name"),
        "clockRate": agent.get("max_engine_clk_fcompute"),
    }
    return {key: value for key, value in found.items() if isinstance(value, (int, str)) and value != ""}
