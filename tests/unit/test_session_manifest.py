"""Manifests and inventories: what is read is checked, and paths stay inside the session's folder."""

from __future__ import annotations

import json

import pytest

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.session.manifest import (
    CycleRecord,
    Manifest,
    RankRecord,
    confined,
    parse_inventory,
    parse_manifest,
    parse_rank_meta,
)


def _manifest() -> Manifest:
    ranks = [
        RankRecord(
            0,
            role="prefill",
            state="collected",
            cycles=[CycleRecord(0, "published", "rank-00000/cycle-00000.tar.gz", 10)],
        ),
        RankRecord(1, role="decode", state="missing", error="gone", cut_at_stop=["r1"]),
        RankRecord(2, state="collected", cycles=[CycleRecord(0, "failed", stage="pack", error="disk full")]),
        RankRecord(3, state="nothing_recorded"),
    ]
    return Manifest("s1", "failed", ranks=ranks, config={"active": 3})


def test_written_manifest_reads_back_equal():
    manifest = _manifest()
    assert parse_manifest(manifest.to_json(), "m") == manifest


def test_incomplete_and_failed_ranks_are_listed():
    document = json.loads(_manifest().to_json())
    assert document["incomplete_ranks"] == [1, 2]
    assert document["failed_ranks"] == [1, 2]


def test_other_json_is_no_manifest():
    assert parse_manifest(b'{"traceEvents": []}', "m") is None
    assert parse_manifest(b"[1]", "m") is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": "torchtrt_viz.session/9"},
        {"session_id": 3},
        {"ranks": {"0": {}}},
        {"ranks": ["rank"]},
        {"ranks": [{"rank": -1}]},
        {"ranks": [{"rank": True}]},
        {"ranks": [{"rank": 0, "cycles": [{"cycle": "0"}]}]},
        {"ranks": [{"rank": 0, "cut_at_start": [1]}]},
        {"ranks": [{"rank": 0, "pid": 2**70}]},
    ],
)
def test_wrong_fields_are_refused_with_the_place(change):
    document = {**json.loads(_manifest().to_json()), **change}
    with pytest.raises(TraceFormatError) as caught:
        parse_manifest(json.dumps(document).encode(), "folder/manifest.json")
    assert "folder/manifest.json" in str(caught.value)


@pytest.mark.parametrize("data", [b'{"format": "torchtrt_viz.session/1"', b"", b"\xff\xfe", b"[" * 100_000])
def test_damaged_manifest_is_an_error(data):
    with pytest.raises(TraceFormatError):
        parse_manifest(data, "m")


def test_rank_meta_needs_rank_and_cycle():
    good = {"format": "torchtrt_viz.rank/1", "rank": 1, "cycle": 0}
    assert parse_rank_meta(json.dumps(good).encode(), "r")["rank"] == 1
    for wrong in ({**good, "rank": None}, {**good, "cycle": -1}, {**good, "role": 5}):
        with pytest.raises(TraceFormatError):
            parse_rank_meta(json.dumps(wrong).encode(), "r")


def test_inventory_entries_are_checked():
    digest = "a" * 64
    entry = {"name": "x", "bytes": 1, "sha256": digest}
    make = lambda files: json.dumps({"format": "torchtrt_viz.inventory/1", "files": files}).encode()  # noqa: E731
    assert parse_inventory(make([entry]), "i") == {"x": (1, digest)}
    for wrong in ([entry, entry], [{**entry, "sha256": "A" * 64}], [{**entry, "bytes": -1}], [{"name": "x"}]):
        with pytest.raises(TraceFormatError):
            parse_inventory(make(wrong), "i")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "a\\..\\x", "a\0b"])
def test_names_that_lead_outside_are_not_confined(tmp_path, name):
    assert confined(tmp_path, name) is None


def test_links_that_lead_outside_are_not_confined(tmp_path):
    inside = tmp_path / "root"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    assert confined(inside, "link/x") is None
    assert confined(inside, "a/b") == inside.resolve() / "a/b"
    assert confined(inside, ".") == inside.resolve()
