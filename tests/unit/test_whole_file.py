"""Files are whole or not there, have the rights of any new file, and leave nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchtrt_viz.errors import OutputError, OutputFolderError
from torchtrt_viz.formats.io.whole_file import write_atomically, write_whole


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(
    "content", [b"caf\xc3\xa9", "caf\xe9", lambda path: path.write_bytes(b"caf\xc3\xa9")], ids=["b", "s", "f"]
)
def test_what_was_there_is_replaced(tmp_path: Path, content: object, durable: bool) -> None:
    file = tmp_path / "report.html"
    file.write_bytes(b"old")
    write_whole(file, content, durable=durable)  # type: ignore[arg-type]
    assert file.read_bytes() == b"caf\xc3\xa9"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_it_has_the_rights_of_a_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "a.json", b"{}")
        write_whole(tmp_path / "b.json", lambda path: path.write_bytes(b"{}"))
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o666 & ~mask}


def test_a_writer_is_given_a_path_with_the_suffix_that_it_goes_by(tmp_path: Path) -> None:
    seen: list[Path] = []

    def write(path: Path) -> None:
        # some libraries put a file of their own in its place
        seen.append(path)
        other = path.with_name("made-by-a-library")
        other.write_text("whole")
        other.replace(path)

    assert write_atomically(str(tmp_path / "table.parquet"), write).read_text() == "whole"
    (path,) = seen
    assert (path.suffix, path.name[0], path.parent) == (".parquet", ".", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["table.parquet"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    file = tmp_path / "trace.json"
    file.write_text("old")

    def write(path: Path) -> None:
        path.write_text("half")
        raise error

    with pytest.raises(type(error)):
        write_whole(file, write)
    with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
        write_atomically(file, write)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputFolderError, match="its folder does not exist"):
        write_atomically(tmp_path / "nowhere" / "a.html", "x")


def test_what_a_killed_process_leaves_is_no_file_of_that_kind(tmp_path: Path) -> None:
    if (child := os.fork()) == 0:
        os._exit(_killed_while_writing(tmp_path))
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".manifest.json.")
    assert left.suffix == ".tmp"


def _killed_while_writing(folder: Path) -> int:
    """End the process where the finished file would be put in place."""
    Path.replace = lambda self, target: os._exit(0)  # type: ignore[method-assign,assignment]
    write_whole(folder / "manifest.json", b"{}", durable=False)
    return 1
