"""Bytes of a trace come out the same however they are packed, and hostile packings are refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard

from torchtrt_viz import TraceFormatError
from torchtrt_viz.formats.io import decompress
from torchtrt_viz.formats.io.source import Source, archive_kind, archive_members

CONTENT = b'{"traceEvents": []}' + bytes(range(256)) * 5000


def _packed(kind: str, folder: Path) -> Source:
    path = folder / "file"
    if kind == "plain":
        path.write_bytes(CONTENT)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(CONTENT))
    elif kind == "gzip members":
        path.write_bytes(gzip.compress(CONTENT[:1000]) + gzip.compress(CONTENT[1000:]))
    elif kind == "zstandard":
        path.write_bytes(zstandard.compress(CONTENT))
    elif kind.startswith("zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/b.json", gzip.compress(CONTENT) if kind == "zip of gzip" else CONTENT)
        return Source(path, "a/b.json")
    else:
        with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as archive:
            data = gzip.compress(CONTENT) if kind == "tar of gzip" else CONTENT
            info = tarfile.TarInfo("../b.json")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        return Source(path, "../b.json")
    return Source(path)


@pytest.mark.parametrize(
    "kind",
    ["plain", "gzip", "gzip members", "zstandard", "zip", "zip of gzip", "tar", "tar.gz", "tar of gzip"],
)
def test_same_bytes_from_every_packing(kind: str, tmp_path: Path) -> None:
    source = _packed(kind, tmp_path)
    assert source.read() == CONTENT
    assert b"".join(source.blocks(1000)) == CONTENT
    assert source.head(100) == CONTENT[:100]
    if source.member is not None:
        assert [name for name, _ in archive_members(Source(source.path))] == [source.member]
        assert archive_kind(Source(source.path)) == kind[:3]
    else:
        assert archive_kind(source) is None
    assert source.on_disk == (kind == "plain")


def test_damaged_gzip_names_the_file_and_the_place(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-200])
    with pytest.raises(TraceFormatError, match="damaged") as caught:
        Source(path).read()
    assert caught.value.path == str(path)
    assert caught.value.offset is not None
    assert Source(path).head(10) == CONTENT[:10]


def test_missing_file_and_member(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="no such file"):
        Source(tmp_path / "nothing").read()
    _packed("zip", tmp_path)
    with pytest.raises(TraceFormatError, match="no such member"):
        Source(tmp_path / "file", "else").read()


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_bomb_is_refused_before_it_fills_the_memory(pack, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(decompress, "FREE_EXPANSION", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(pack(bytes(64 << 20)))
    seen = []
    with pytest.raises(TraceFormatError, match="without bound"):
        seen.extend(len(block) for block in Source(path).blocks())
    assert sum(seen) < 64 << 20


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(decompress, "FREE_EXPANSION", 1 << 20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(64 << 20))
    with pytest.raises(TraceFormatError, match="without bound"):
        Source(path, "zeros").read()


def test_a_document_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(1000))
    with pytest.raises(TraceFormatError, match="too large"):
        Source(path).read(limit=999)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.99])
def test_all_that_precedes_damage_is_read(cut: float, tmp_path: Path) -> None:
    content = b"".join(b"%d\n" % i for i in range(300_000))
    packed = gzip.compress(content)
    path = tmp_path / "cut.gz"
    path.write_bytes(packed[: int(len(packed) * cut)])
    expected = zlib.decompressobj(wbits=31).decompress(path.read_bytes())
    blocks: list[bytes] = []
    with pytest.raises(decompress.DamagedStreamError) as raised:
        blocks.extend(Source(path).blocks())
    got = b"".join(blocks)
    assert got == expected
    assert content.startswith(got)
    assert raised.value.offset == len(got)
