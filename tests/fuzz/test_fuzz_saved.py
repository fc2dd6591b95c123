"""Saved traces with bytes, columns and documents changed: a trace that answers, or a TraceFormatError.

TORCHTRT_VIZ_FUZZ_INPUTS makes the run longer; one that hangs runs into the limit of every test (--timeout).
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rank_traces import event, trace_json, write

import torchtrt_viz as tv
from torchtrt_viz.errors import TorchTrtVizError

INPUTS = int(os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "40"))
NONSENSE: tuple[Any, ...] = (None, -1, 0, 2**40, 2**63, 0.5, "", "x", "../x", "<b>", [], {}, [[]], True)
NUMBERS = (-(2**63), -2, -1, 0, 1, 5, 10**6, 2**31, 2**62, 2**63 - 1)


def saved(folder: Path) -> Path:
    events = [
        event("step", 0, 900),
        event("aten::mm", 10, 200, "cpu_op", **{"Input Dims": [[2, 3]], "External id": 7}),
        event("cudaLaunchKernel", 20, 5, "cuda_runtime", correlation=3),
        event("gemm", 40, 100, "kernel", tid=9, device=0, stream=9, correlation=3),
    ]
    return Path(tv.load(write(folder / "t.json", trace_json(events))).save(folder / "seed"))


def changed_json(chance: random.Random, path: Path) -> None:
    document = json.loads(path.read_bytes())
    at: Any = document
    for _ in range(6):
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(at[key], (dict, list)) and at[key] and chance.random() < 0.7:
            at = at[key]
            continue
        if chance.random() < 0.3:
            del at[key]
        else:
            at[key] = chance.choice(NONSENSE)
        break
    path.write_text(json.dumps(document))


def changed_table(chance: random.Random, path: Path) -> None:
    table = pq.read_table(path)
    if not table.num_columns:
        return
    number = chance.randrange(table.num_columns)
    field, column = table.schema.field(number), table.column(number)
    match chance.randrange(5):
        case 0:
            table = table.remove_column(number)
        case 1:
            table = table.slice(0, chance.randrange(table.num_rows + 1))
        case 2 if pa.types.is_integer(field.type) and table.num_rows:
            values = column.to_pylist()
            values[chance.randrange(len(values))] = chance.choice(NUMBERS)
            try:
                table = table.set_column(number, field, pa.array(values, field.type))
            except (pa.ArrowInvalid, OverflowError):
                return
        case 3:
            table = table.set_column(number, field.name, pa.nulls(table.num_rows, field.type))
        case _:
            table = pa.concat_tables([table, table])
    pq.write_table(table, path)


def changed_bytes(chance: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    if not data:
        return
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    for _ in range(chance.choice([1, 4, 30])):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(bytes(data))


def test_changed_traces_answer_or_are_refused(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("TORCHTRT_VIZ_FUZZ_SEED", "1"))
    seed = saved(tmp_path)
    loaded = refused = 0
    for _ in range(INPUTS):
        folder = tmp_path / "changed"
        shutil.copytree(seed, folder)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        for _ in range(chance.choice([1, 1, 2, 5])):
            path = chance.choice(files)
            how = chance.random()
            try:
                if how < 0.1:
                    path.unlink(missing_ok=True)
                elif how < 0.4 or path.suffix not in (".json", ".parquet"):
                    changed_bytes(chance, path)
                elif path.suffix == ".json":
                    changed_json(chance, path)
                else:
                    changed_table(chance, path)
            except (OSError, ValueError):  # it has been changed beyond reading already
                continue
        try:
            trace = tv.load(folder)
            spans = trace.spans
            assert (spans["dur_ns"] >= 0).all()
            trace.args.read(range(len(spans)))
            trace.summary()
            trace.operators()
            trace.kernels()
            trace.questions()
            loaded += 1
        except TorchTrtVizError:
            refused += 1
        shutil.rmtree(folder)
    assert loaded > 0
    assert refused > 0
