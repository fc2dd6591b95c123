"""The verdict over ranks: who keeps others waiting comes first, with what that could save each of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from flight_recorder_dumps import Job
from small_session import write_small_session

import torchtrt_viz as tv
from torchtrt_viz.errors import OptionError


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tv.Session:
    return tv.load(write_small_session(tmp_path_factory.mktemp("session")))


def test_a_late_rank_could_save_the_others_what_they_waited(session: tv.Session) -> None:
    table = session.verdict()
    first = table.iloc[0]
    late = session.stragglers()
    waited = late["waited_for_ns"].dropna()
    assert first["kind"] == "late rank"
    assert first["at_stake_ns"] == waited.max()
    assert first["could_save_ns"] == pytest.approx(waited.max() / (len(waited) - 1))
    savings = table["could_save_ns"].dropna()
    assert savings.is_monotonic_decreasing


def test_every_finding_has_a_table_that_evaluates(session: tv.Session) -> None:
    for row in session.verdict().itertuples():
        made = eval(row.frame, {"session": session})
        assert isinstance(made, pd.DataFrame), row.frame
        assert len(made), row.frame
    with pytest.raises(OptionError, match="1 or more"):
        session.verdict(top=0)


def test_text_notebook_and_page_say_the_same(session: tv.Session, tmp_path: Path) -> None:
    table = session.verdict()
    page = session.to_html(tmp_path / "report.html").read_text()
    text = " ".join(repr(table).split())
    for row in table.itertuples():
        assert row.evidence.rstrip(".") in text
        assert row.frame in page
    assert page.index('<section id="findings"') < page.index('<section id="ranks"')
    assert text.startswith("HOST")
    assert "<button" not in table._repr_html_()


def test_who_hangs_comes_first(tmp_path: Path) -> None:
    job = Job(2)
    job.call("all_reduce")
    job.call("all_reduce", ranks=[0], state="started")
    table = tv.load(job.write(tmp_path)).verdict()
    assert table["kind"].iloc[0] == "hang"
    assert pd.isna(table["could_save_ns"].iloc[0])
    assert table["basis"].iloc[0] == "the job does not go on"
