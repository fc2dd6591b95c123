"""Exports of Nsight Systems with nonsense in cells, rows and columns and tables gone: never a crash.

Bytes of the database are mutated in test_fuzz_sqlite.py. ``TORCHTRT_VIZ_FUZZ_INPUTS`` says how many exports
are tried.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
from pathlib import Path

from nsys_writer import AGES, two_processes

import torchtrt_viz as tv
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.trace import Trace

EXPORTS = int(os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "40"))
NONSENSE = (
    *(None, -1, 0, 1, 7, 10**18, 2**62, 2**63 - 1, -(2**63), 0.5, 1e300, float("inf")),
    *("", "x", "\0", "<script>", "9" * 40, b"", b"\xff\xfe", b"x" * 300),
)


def damaged(chance: random.Random, path: Path) -> None:
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(chance.choice([1, 1, 2, 4, 12])):
            table = chance.choice(tables)
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            rows = [row for (row,) in database.execute(f'SELECT rowid FROM "{table}"')]
            if not rows or not columns:
                continue
            row, column = chance.choice(rows), chance.choice(columns)
            match chance.randrange(8):
                case 0:
                    database.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
                case 1:
                    fields = ", ".join(f'"{name}"' for name in columns)
                    database.execute(
                        f'INSERT OR IGNORE INTO "{table}" ({fields}) '
                        f'SELECT {fields} FROM "{table}" WHERE rowid = ?',
                        (row,),
                    )
                case 2 if len(columns) > 1:
                    database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "gone_{column}"')
                case 3 if chance.random() < 0.3:
                    database.execute(f'DROP TABLE "{table}"')
                    tables.remove(table)
                case _:
                    # A key that is the row's number takes integers only.
                    with contextlib.suppress(sqlite3.IntegrityError):
                        database.execute(
                            f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?',
                            (chance.choice(NONSENSE), row),
                        )
    database.close()


def test_damaged_exports_load_and_answer(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("TORCHTRT_VIZ_FUZZ_SEED", "20261201"))
    seeds = [
        two_processes(age, pids=range(100, 104)).write(tmp_path / f"{age}.sqlite").read_bytes()
        for age in AGES
    ]
    answered = 0
    path = tmp_path / "export.sqlite"
    for number in range(EXPORTS):
        path.write_bytes(seeds[number % len(seeds)])
        damaged(chance, path)
        try:
            trace = tv.load(path)
        except TorchTrtVizError:
            continue  # what makes it an export is gone
        assert isinstance(trace, Trace)
        answered += 1
        found = trace.meta["accounting"]
        others = sum(found["left_out"].values()) + sum(found["unread"].values())
        assert found["in_file"] == found["read"] + others
        spans = trace.spans
        assert (spans["dur_ns"] >= 0).all()
        trace.args.read(range(len(spans)))
        trace.instant_args.read(range(len(trace.instants)))
        # What cannot be true is in no sum, so that no table exceeds what the rest of the file holds.
        kernels = trace.kernels()
        usable = spans["kind"].isin(["kernel", "memcpy", "memset", "communication"]) & (
            spans["domain"] == "gpu"
        )
        assert sum(kernels["total_ns"].tolist()) <= sum(spans.loc[usable, "dur_ns"].tolist())
        trace.nvtx()
        trace.nvtx(project="gpu")
        trace.graphs()
        trace.operators()
        trace.explain()
        trace.summary()
        trace.questions()
        trace.host_gpu()
    assert answered > EXPORTS // 2
