"""The hang of a large job: one rank of a thousand misses a collective."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight_recorder_dumps import many_ranks

import torchtrt_viz as tv


@pytest.mark.slow
def test_a_thousand_ranks(tmp_path: Path) -> None:
    session = tv.load(many_ranks(1000).write(tmp_path))
    assert isinstance(session, tv.Session)
    row = session.hangs().iloc[0]
    assert row["missing"] == (333,)
    assert len(row["waiting"]) == 999
    assert row["finding"].startswith("Ranks 0 to 332 and 334 to 999 wait in all_reduce (collective 3 of the")
