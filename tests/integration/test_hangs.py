"""Where ranks hang, on dumps of jobs whose fault is known: each is found, and none where there is none."""

from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest
from flight_recorder_dumps import Job, many_ranks, old_document
from line_counter import lines_run
from rank_traces import simple_events, trace_json, write

import torchtrt_viz as tv
from torchtrt_viz.cli import main


def session(folder: Path) -> tv.Session:
    loaded = tv.load(folder)
    assert isinstance(loaded, tv.Session)
    return loaded


def only(folder: Path) -> pd.Series:
    """Return the only row of the table."""
    hangs = session(folder).hangs()
    assert len(hangs) == 1, hangs["finding"].tolist()
    return hangs.iloc[0]


def steps(job: Job, count: int = 5) -> Job:
    for _ in range(count):
        job.call("all_reduce")
        job.call("_all_gather_base", [[8]], [[8 * len(job.recorders)]])
    return job


# -- nothing hangs ---------------------------------------------------------------------------------------


def test_a_healthy_job_hangs_nowhere(tmp_path: Path) -> None:
    job = Job(4, [("1", "tp", (0, 1)), ("2", "tp", (2, 3))])
    for _ in range(20):
        job.call("all_reduce")
        job.call("broadcast", [[4, 4]])
        job.call("all_reduce", group="1")
        job.call("all_reduce", group="2")
    made = session(job.write(tmp_path))
    assert made.hangs().empty
    positions = made.positions()
    assert positions[positions["group"] == "0"]["last"].tolist() == [40] * 4
    assert positions["last_completed"].tolist() == positions["last"].tolist()
    assert len(positions) == 4 + 2 + 2
    assert made.explain().empty


def test_what_may_differ_between_ranks_is_no_fault(tmp_path: Path) -> None:
    job = Job(3)
    for rank in range(3):
        here = [rank]
        job.call("gather", [[3]], [[3]] * 3 if rank == 0 else [], ranks=here)
        job.call("scatter", [[3]] * 3 if rank == 0 else [], [[3]], ranks=here)
        job.call("all_to_all", [[1 + rank], [2], [3]], [[1 + rank], [2], [3]], ranks=here)
        job.call("all_gather", [[rank + 1]], [[1], [2], [3]], ranks=here)
        job.call("reduce_scatter", [[1], [2], [3]], [[rank + 1]], ranks=here)
        job.call("all_reduce", [[4, 4] if rank else [16]], ranks=here)  # as many elements
        job.call("all_reduce", state="started", line=10 + rank, ranks=here)  # the same call at other lines
    assert session(job.write(tmp_path)).hangs().empty


def test_what_is_in_flight_everywhere_is_no_fault(tmp_path: Path) -> None:
    """Hosts run ahead of their devices by different numbers of calls; all are in the same collective."""
    job = steps(Job(3), 2)
    job.call("all_reduce", state="started")
    for _ in range(3):
        job.call("all_reduce", state="scheduled", ranks=[0, 1])
    job.call("all_reduce", state="scheduled", ranks=[0])
    made = session(job.write(tmp_path))
    assert made.hangs().empty
    assert made.positions()["behind"].tolist() == [0, 1, 4]


def test_dumps_of_different_moments_prove_nothing(tmp_path: Path) -> None:
    """Rank 2's dump is older: the others have completed what it lacks, which they cannot have without it."""
    job = steps(Job(3), 2)
    for _ in range(3):
        job.call("all_reduce", ranks=[0, 1])
    made = session(job.write(tmp_path))
    assert made.hangs().empty
    assert made.positions().set_index("rank")["older"].to_dict() == {0: False, 1: False, 2: True}


def test_a_healthy_gloo_job_hangs_nowhere(tmp_path: Path) -> None:
    """Gloo leaves every entry scheduled, and has retired all of them."""
    job = Job(3, backend="gloo")
    for _ in range(6):
        job.call("all_reduce", state="scheduled", retired=True)
    assert session(job.write(tmp_path)).hangs().empty


# -- a rank is missing -----------------------------------------------------------------------------------


def test_the_missing_rank_is_named(tmp_path: Path) -> None:
    job = steps(Job(4))
    job.call("all_reduce", [[32, 8]], ranks=[0, 1, 3], state="started", line=42, dtype="BFloat16")
    row = only(job.write(tmp_path))
    assert (row["problem"], row["certainty"]) == ("not joined", "likely")
    assert (row["waiting"], row["missing"], row["no_dump"]) == ((0, 1, 3), (2,), ())
    assert (row["group"], row["group_desc"], row["backend"], row["group_size"]) == (
        "0",
        "default_pg",
        "nccl",
        4,
    )
    assert (row["operation"], row["sequence"], row["state"]) == ("all_reduce", 11, "started")
    assert (row["sizes"], row["types"]) == ("[[32, 8]]", "bfloat16")
    assert row["source"] == "/home/someone/train.py:42 (step)"
    assert row["stack"].splitlines()[-1] == "/home/someone/train.py:99 (<module>)"
    assert (row["last_sequence"], row["last_operation"]) == (10, "_all_gather_base")
    assert row["finding"] == (
        "Ranks 0, 1 and 3 wait in all_reduce (collective 11 of the default group, 32 x 8 x bfloat16), called "
        "at train.py:42; rank 2 has not joined: its last is collective 10, at train.py:10."
    )
    assert session(tmp_path).explain()["finding"][0].startswith(row["finding"])


def test_a_timeout_makes_it_certain(tmp_path: Path) -> None:
    job = steps(Job(3))
    job.call("all_reduce", ranks=[0, 2], state="started", retired=True)  # done with, and not complete
    row = only(job.write(tmp_path))
    assert (row["problem"], row["certainty"], row["missing"]) == ("not joined", "certain", (1,))


def test_a_call_that_outlived_its_timeout_is_certain(tmp_path: Path) -> None:
    job = Job(2, [("1", "other", (0,))])
    job.call("all_reduce")
    job.call("all_reduce", ranks=[0], state="started", at_ms=10, timeout_ms=1_000)
    job.call("barrier", (), group="1", at_ms=2_000)  # the same rank went on with another group
    hangs = session(job.write(tmp_path)).hangs()
    assert hangs[["certainty", "missing"]].to_numpy().tolist() == [["certain", (1,)]]


def test_ranks_at_several_places(tmp_path: Path) -> None:
    job = steps(Job(5), 2)
    job.call("all_reduce", ranks=[0, 1, 2, 3], state="started")
    job.call("all_reduce", ranks=[0, 1], state="scheduled")
    row = only(job.write(tmp_path))
    assert (row["sequence"], row["waiting"], row["missing"]) == (5, (0, 1, 2, 3), (4,))
    positions = session(tmp_path).positions()
    assert positions["last"].tolist() == [6, 6, 5, 5, 4]
    assert positions["behind"].tolist() == [0, 0, 1, 1, 2]


def test_a_rank_that_never_called_anything(tmp_path: Path) -> None:
    job = Job(3)
    job.call("all_reduce", ranks=[0, 1], state="started")
    row = only(job.write(tmp_path))
    assert (row["missing"], row["sequence"]) == ((2,), 1)
    assert pd.isna(row["last_sequence"])
    assert "rank 2 has not joined: it has recorded nothing of this group" in row["finding"]


def test_gloo_is_told_by_positions(tmp_path: Path) -> None:
    job = Job(3, backend="gloo")
    for _ in range(4):
        job.call("all_reduce", state="scheduled", retired=True)
    job.call("all_reduce", ranks=[0, 2], state="scheduled", retired=True)
    row = only(job.write(tmp_path))
    assert (row["certainty"], row["waiting"], row["missing"], row["sequence"]) == ("likely", (0, 2), (1,), 5)
    assert "gloo does not record whether a collective completed" in row["why"]


# -- a dump is missing -----------------------------------------------------------------------------------


def test_a_missing_dump_is_named_where_ranks_wait(tmp_path: Path) -> None:
    job = steps(Job(4))
    job.call("all_reduce", ranks=[0, 1, 2], state="started")
    row = only(job.write(tmp_path, ranks=[0, 1, 2]))
    assert (row["problem"], row["certainty"], row["no_dump"]) == ("no dump", "possible", (3,))
    assert row["finding"].startswith(
        "There is no dump of rank 3. Ranks 0 to 2 wait in all_reduce (collective 11"
    )


def test_a_missing_dump_where_all_completed_is_no_hang(tmp_path: Path) -> None:
    assert session(steps(Job(4)).write(tmp_path, ranks=[0, 1, 2])).hangs().empty


def test_a_damaged_dump_counts_as_missing(tmp_path: Path) -> None:
    job = steps(Job(3))
    job.call("all_reduce", ranks=[0, 1], state="started")
    job.write(tmp_path)
    (tmp_path / "nccl_trace_rank_2").write_bytes((tmp_path / "nccl_trace_rank_2").read_bytes()[:60])
    made = session(tmp_path)
    assert made.hangs()[["problem", "no_dump"]].to_numpy().tolist() == [["no dump", (2,)]]
    assert made[2].meta["warnings"][0].code == "truncated"
    (tmp_path / "nccl_trace_rank_2").write_bytes((tmp_path / "nccl_trace_rank_0").read_bytes()[:-300])
    assert session(tmp_path).hangs()["no_dump"].tolist() == [(2,)]


def test_a_hostile_dump_counts_as_missing(tmp_path: Path) -> None:
    job = steps(Job(3))
    job.call("all_reduce", ranks=[0, 1], state="started")
    job.write(tmp_path)
    (tmp_path / "nccl_trace_rank_2").write_bytes(
        pickle.dumps({"version": "2.10", "pg_config": {}, "entries": print}, 2)
    )
    made = session(tmp_path)
    assert made.hangs()["no_dump"].tolist() == [(2,)]
    assert made.overview().ranks["state"].tolist() == ["ok", "ok", "damaged"]
    assert "GLOBAL __builtin__ print" in made.ranks["error"][2]


# -- ranks disagree --------------------------------------------------------------------------------------


def test_other_sizes(tmp_path: Path) -> None:
    job = steps(Job(4), 1)
    job.call("all_reduce", [[16]], ranks=[0, 1, 3], state="started")
    job.call("all_reduce", [[8]], ranks=[2], state="started", line=12)
    row = only(job.write(tmp_path))
    assert (row["problem"], row["certainty"], row["sequence"]) == ("size", "certain", 3)
    assert (row["differing"], row["waiting"]) == ((2,), (0, 1, 2, 3))
    assert (row["sizes"], row["found"]) == ("[[16]]", "all_reduce 8 x float32")
    assert row["finding"] == (
        "The ranks of the default group disagree in collective 3: ranks 0, 1 and 3 call all_reduce "
        "(16 x float32) at train.py:10; rank 2 calls all_reduce (8 x float32) at train.py:12."
    )


def test_other_element_types(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 2], state="started")
    job.call("all_reduce", ranks=[1], state="started", dtype="Half")
    row = only(job.write(tmp_path))
    assert (row["problem"], row["differing"], row["found"]) == ("dtype", (1,), "all_reduce 16 x float16")


def test_another_collective(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 1], state="started")
    job.call("barrier", (), ranks=[2], state="started")
    row = only(job.write(tmp_path))
    assert (row["problem"], row["differing"], row["found"]) == ("type", (2,), "barrier")


def test_another_order(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 2], state="started")
    job.call("broadcast", [[3]], ranks=[0, 2], state="scheduled")
    job.call("broadcast", [[3]], ranks=[1], state="started")
    job.call("all_reduce", ranks=[1], state="scheduled")
    row = only(job.write(tmp_path))
    assert (row["problem"], row["differing"], row["sequence"]) == ("order", (1,), 3)
    assert row["finding"].endswith("The same calls come in another order.")
    assert "1 later collectives" in row["why"]


@pytest.mark.parametrize("left_out", [True, False])
def test_a_call_left_out_or_added(tmp_path: Path, left_out: bool) -> None:
    job = Job(3)
    job.call("all_reduce")
    for number in range(6):
        common = {"state": "started" if number == 0 else "scheduled"}
        if number == 2:
            job.call("broadcast", [[9]], ranks=[0, 1] if left_out else [2], **common)
        job.call("all_reduce", [[10 + number]], **common)
    row = session(job.write(tmp_path)).hangs().iloc[0]
    assert (row["problem"], row["sequence"], row["differing"]) == ("type", 4, (2,))
    assert ("rank 2 left out a call" if left_out else "rank 2 made a call more") in row["why"]


def test_an_exchange_that_does_not_add_up(tmp_path: Path) -> None:
    job = steps(Job(2), 1)
    job.call("all_to_all", [[3], [5]], [[3], [2]], ranks=[0], state="started")
    job.call("all_to_all", [[2], [4]], [[1], [4]], ranks=[1], state="started")
    row = only(job.write(tmp_path))
    assert (row["problem"], row["differing"]) == ("size", ())
    assert row["why"] == "its ranks send 14 elements and expect 10"


def test_where_no_side_has_the_most_both_differ(tmp_path: Path) -> None:
    job = Job(2)
    job.call("all_reduce", [[16]], ranks=[0], state="started")
    job.call("all_reduce", [[8]], ranks=[1], state="started")
    assert only(job.write(tmp_path))["differing"] == (0, 1)


def test_a_difference_that_completed_is_no_hang(tmp_path: Path) -> None:
    job = Job(2)
    job.call("all_reduce", [[16]], ranks=[0])
    job.call("all_reduce", [[8]], ranks=[1])
    job.call("all_reduce")
    assert session(job.write(tmp_path)).hangs().empty


def test_all_joined_and_it_timed_out(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", state="started", retired=True)
    row = only(job.write(tmp_path))
    assert (row["problem"], row["certainty"]) == ("not completed", "certain")
    assert (row["waiting"], row["missing"]) == ((0, 1, 2), ())


# -- groups ----------------------------------------------------------------------------------------------


def test_ranks_that_wait_for_one_another(tmp_path: Path) -> None:
    """Rank 3 went to the barrier without the gather that rank 2 waits in, and rank 2 misses the barrier."""
    job = Job(4, [("1", "tp", (0, 1)), ("2", "tp", (2, 3))])
    job.call("all_reduce")
    job.call("all_reduce", group="1")
    job.call("all_gather", [[2]], [[4]], group="2", ranks=[2], state="started", line=30)
    job.call("barrier", (), ranks=[0, 1, 3], state="started", line=50)
    hangs = session(job.write(tmp_path)).hangs()
    by_group = hangs.set_index("group")
    assert by_group["waiting"].to_dict() == {"2": (2,), "0": (0, 1, 3)}
    assert by_group["missing"].to_dict() == {"2": (3,), "0": (2,)}
    assert hangs["held_by"].tolist() == [1, 0]
    assert all("in a circle" in why for why in hangs["why"])


def test_causes_come_first(tmp_path: Path) -> None:
    """Rank 1 stands still; rank 0 waits for it in their group, and ranks 2 and 3 wait for both."""
    job = Job(4, [("7", "pp", (0, 1))])
    job.call("all_reduce")
    job.call("all_gather", [[2]], [[4]], group="7", ranks=[0], state="started")
    job.call("all_reduce", ranks=[2, 3], state="started")
    hangs = session(job.write(tmp_path)).hangs()
    assert hangs[["group", "waiting", "missing"]].to_numpy().tolist() == [
        ["7", (0,), (1,)],
        ["0", (2, 3), (0, 1)],
    ]
    assert hangs["held_by"].isna().tolist() == [True, False]
    held = "; rank 0 waits itself in all_gather (collective 1 of group pp (7) of ranks 0 and 1)."
    assert hangs["finding"][1].endswith(held)


def test_of_several_causes_each_is_named(tmp_path: Path) -> None:
    job = Job(6, [("10", "tp", (0, 1)), ("11", "pp", (2, 3, 4))])
    job.call("all_reduce")
    job.call("all_gather", [[2]], [[4]], group="10", ranks=[0], state="started")
    job.call("all_reduce", [[9]], group="11", ranks=[2, 3], state="started")
    job.call("all_reduce", [[8]], group="11", ranks=[4], state="started")
    job.call("all_reduce", ranks=[5], state="started")
    hangs = session(job.write(tmp_path)).hangs()
    assert hangs["problem"].tolist() == ["size", "not joined", "not joined"]
    assert hangs["held_by"].fillna(-1).tolist() == [-1, -1, 0]
    assert hangs["finding"][2].endswith(
        "; ranks 2 to 4 wait themselves in all_reduce (collective 1 of group pp (11) of ranks 2 to 4); rank "
        "0 waits itself in all_gather (collective 1 of group tp (10) of ranks 0 and 1)."
    )


def test_groups_of_one_name_are_told_apart_by_their_ranks(tmp_path: Path) -> None:
    job = Job(4, [("split", "half", (0, 1)), ("split", "half", (2, 3))])
    job.call("all_reduce")
    for ranks in ((0, 1), (2, 3)):
        job.call("all_reduce", group="split", ranks=ranks)
    job.call("all_reduce", group="split", ranks=[2], state="started")
    row = only(job.write(tmp_path))
    assert (row["waiting"], row["missing"], row["group_size"]) == ((2,), (3,), 2)
    assert "group half (split) of ranks 2 and 3" in row["finding"]


# -- sends and receives ----------------------------------------------------------------------------------


def test_a_receive_without_its_send(tmp_path: Path) -> None:
    job = Job(3)
    job.call("all_reduce")
    job.send(0, 1)
    job.receive(0, 1)
    job.receive(2, 0, [[7]], state="started", line=61)
    row = only(job.write(tmp_path))
    assert (row["problem"], row["operation"], row["certainty"]) == ("no partner", "recv", "likely")
    assert (row["waiting"], row["missing"]) == ((0,), (2,))
    assert row["finding"] == (
        "Rank 0 waits to receive from rank 2 (in the default group, 7 x float32), called at train.py:61; "
        "rank 2 has not called the send."
    )


def test_a_send_and_a_receive_that_do_not_fit(tmp_path: Path) -> None:
    job = Job(2)
    job.send(0, 1)
    job.receive(0, 1)
    job.send(0, 1, [[5]], state="started")
    job.receive(0, 1, [[6]], state="started", line=70)
    row = only(job.write(tmp_path))
    assert (row["problem"], row["certainty"], row["differing"], row["sequence"]) == (
        "size",
        "certain",
        (1,),
        2,
    )
    assert row["finding"].endswith("rank 1 calls recv (6 x float32) at train.py:70: they do not fit.")


def test_sends_and_receives_that_meet_are_no_fault(tmp_path: Path) -> None:
    job = Job(2)
    for _ in range(3):
        job.send(0, 1)
        job.receive(0, 1)
        job.send(1, 0)
        job.receive(1, 0)
    job.send(0, 1, state="started")
    job.receive(0, 1, state="scheduled")
    assert session(job.write(tmp_path)).hangs().empty
    # of a full ring the first ones are gone, and not as many on both sides
    assert session(job.write(tmp_path / "ring", last={0: 4, 1: 3})).hangs().empty


def test_a_batch_of_sends_takes_the_state_of_its_end(tmp_path: Path) -> None:
    """Torch records the parts of a batch without states, and one entry for the whole."""
    job = Job(2)
    for rank, name in ((0, "send 0->1"), (1, "recv 1<-0")):
        add = job.recorders[rank].add
        add("0", "default_pg", f"nccl:{name}", [[5]], p2p=True, state="scheduled", retired=False)
        add("0", "default_pg", "nccl:coalesced", [], p2p=True, count=False)
    job.send(0, 1, state="scheduled")
    row = only(job.write(tmp_path))
    assert (row["waiting"], row["missing"], row["sequence"]) == ((0,), (1,), 2)


# -- ring buffers, versions, forms -----------------------------------------------------------------------


def test_ring_buffers_begin_at_different_numbers(tmp_path: Path) -> None:
    job = steps(Job(3), 10)
    job.call("all_reduce", ranks=[0, 2], state="started")
    job.write(tmp_path, last={0: 4, 1: 15, 2: 9})
    made = session(tmp_path)
    assert made.positions()["first"].tolist() == [18, 6, 13]
    assert made.hangs()[["waiting", "missing", "sequence"]].to_numpy().tolist() == [[(0, 2), (1,), 21]]


def test_a_group_that_fell_out_of_the_ring(tmp_path: Path) -> None:
    """Rank 1's recorder has nothing of the group any more: that it has not joined is only possible."""
    job = Job(2, [("9", "dp", (0, 1))])
    job.call("all_reduce", group="9")
    job.call("all_reduce", group="9", ranks=[0], state="started")
    steps(job, 5)
    row = only(job.write(tmp_path, last={1: 6}))
    assert (row["missing"], row["certainty"]) == ((1,), "possible")


@pytest.mark.parametrize("version", [None, "1.0", "1.4"])
def test_older_versions(tmp_path: Path, version: str | None) -> None:
    for rank, calls in enumerate((5, 4, 5)):
        document = old_document(version, range(3), calls, waiting=calls == 5)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(document, 2))
    row = only(tmp_path)
    assert (row["waiting"], row["missing"], row["sequence"]) == ((0, 2), (1,), 5)
    assert row["source"] == "train.py:7 (step)"


def test_json_says_the_same_without_stacks(tmp_path: Path) -> None:
    job = steps(Job(3), 2)
    job.call("all_reduce", ranks=[0, 2], state="started")
    job.send(1, 2, state="started")
    pickled = session(job.write(tmp_path / "pickles")).hangs()
    read = session(job.write_json(tmp_path / "json")).hangs()
    assert read["source"].isna().all()
    same = ["problem", "certainty", "waiting", "missing", "sequence", "sizes", "types", "since_unix_ns"]
    pd.testing.assert_frame_equal(read[same], pickled[same])
    assert len(read) == 2


def test_a_batch_under_one_number_is_one_call(tmp_path: Path) -> None:
    job = Job(2)
    for rank in range(2):
        for part in range(3):
            more = {"state": "scheduled", "retired": False, "count": part == 0}
            job.call("all_gather_into_tensor_coalesced", [[4 + part]], [[8 + 2 * part]], ranks=[rank], **more)
        job.call("ALLGATHER_coalesced", (), ranks=[rank], count=False)
    assert session(job.write(tmp_path)).hangs().empty
    assert session(tmp_path).positions()["last"].tolist() == [1, 1]


# -- sessions --------------------------------------------------------------------------------------------


def test_dumps_join_the_ranks_of_traces(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 2], state="started")
    job.write(tmp_path / "dumps")
    for rank in range(3):
        data = trace_json(simple_events(), rank=rank, world_size=3, host_name=f"node-{rank % 2}")
        write(tmp_path / f"rank{rank}.pt.trace.json", data)
    made = session(tmp_path)
    assert repr(made) == "<Session: 3 traces and 3 dumps of 3 ranks>"
    assert made.ranks["what"].tolist().count("dump") == 3
    hosts = made.ranks.groupby("rank")["host"].unique().map(list).to_dict()
    assert hosts == {0: ["node-0"], 1: ["node-1"], 2: ["node-0"]}
    assert made[1].meta["format"] == "kineto"
    assert made.trace(1, what="dump").meta["format"] == "flight_recorder"
    assert made.hangs()["missing"].tolist() == [(1,)]
    overview = made.overview()
    assert len(overview.totals) == 3  # the traces
    assert overview.explain()["source"].tolist()[0] == "hangs"
    assert not made.meta["warnings"]


def test_names_give_ranks_and_hosts(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    for rank, name in enumerate(("nccl_trace_rank_container-node02_0", "my.prefix1", "fr-rank-2-final.pkl")):
        (tmp_path / name).write_bytes(pickle.dumps(job.document(rank), 4))
    made = session(tmp_path)
    assert made.ranks["rank"].tolist() == [0, 1, 2]
    assert made.ranks["host"].tolist() == ["container-node02", None, None]
    assert made.ranks["world_size"].tolist() == [3, 3, 3]
    assert made.hangs().empty


def test_a_dump_without_a_rank_is_told(tmp_path: Path) -> None:
    job = steps(Job(2), 1)
    job.write(tmp_path)
    (tmp_path / "dump.pickle").write_bytes(pickle.dumps(job.document(0), 2).replace(b"2.10", b"2.11"))
    made = session(tmp_path)
    assert [warning.code for warning in made.meta["warnings"]] == ["no_rank"]
    assert made.hangs().empty


def test_two_jobs_in_one_folder_are_kept_apart(tmp_path: Path) -> None:
    first, second = steps(Job(2), 1), steps(Job(2), 3)
    second.call("all_reduce", ranks=[0], state="started")
    first.write(tmp_path / "attempt_0")
    second.write(tmp_path / "attempt_1")
    row = only(tmp_path)
    assert (row["waiting"], row["missing"], row["sequence"]) == ((0,), (1,), 7)


def test_the_command_line_prints_the_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 2], state="started")
    with pytest.raises(SystemExit) as left:
        main(["show", str(job.write(tmp_path))])
    assert left.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Ranks 0 and 2 wait in all_reduce (collective 3 of the default group, 16 x float32)" in printed
    assert "rank 1 has not joined" in printed
    assert "hangs: Hangs: where ranks wait or disagree" in printed


def test_the_report_has_sentences_table_and_stack(tmp_path: Path) -> None:
    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 2], state="started")
    page = session(job.write(tmp_path / "dumps")).to_html(tmp_path / "page.html").read_text()
    assert "rank 1 has not joined: its last is collective 2, at train.py:10." in page
    assert '<section id="hangs">' in page
    assert '<section id="positions">' in page
    assert "/home/someone/train.py:10 (step)\n/home/someone/train.py:99 (&lt;module&gt;)</pre>" in page


def test_the_tables_are_as_documented(tmp_path: Path) -> None:
    from torchtrt_viz.analysis.catalogue import FRAMES

    job = steps(Job(3), 1)
    job.call("all_reduce", ranks=[0, 2], state="started")
    for made in (session(job.write(tmp_path / "dumps")), session(steps(Job(2)).write(tmp_path / "healthy"))):
        for name, frame in (("hangs", made.hangs()), ("positions", made.positions())):
            documented = FRAMES[f"session.{name}"]
            assert list(frame.columns) == documented.names
            for column in documented.columns:
                assert column.fits(frame[column.name].dtype), column.name


# -- many ranks ------------------------------------------------------------------------------------------


def test_the_work_grows_as_the_ranks_do(tmp_path: Path) -> None:
    counted = {}
    for ranks in (8, 32):
        made = session(many_ranks(ranks).write(tmp_path / str(ranks)))
        counted[ranks] = lines_run(lambda made=made: made.hangs())
        assert made.hangs()["missing"].tolist() == [(ranks // 3,)]
    assert counted[32] < 4.5 * counted[8]
