"""ETRecords without what only re-execution needs: small enough to keep beside every capture."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.new_file import write_file

__all__ = ["slim_etrecord"]

_HEAVY = ("_state_dict", "_constants", "_example_inputs")


def slim_etrecord(source: str | PathLike[str], target: str | PathLike[str], *, force: bool = False) -> Path:
    """Copy an ETRecord without weights, constants and inputs, compressed.

    What is left leads events back to operators, modules and source lines, which is all that
    ``torchtrt_viz.load`` reads of it. executorch's own Inspector wants the whole record.

    Raises
    ------
    TraceFormatError
        When ``source`` is no ETRecord.
    CaptureError
        When ``target`` exists and ``force`` is not set, or cannot be written.
    """
    path = Path(source)
    try:
        with zipfile.ZipFile(path) as record:
            names = record.namelist()
            if "ETRECORD_V0" not in names:
                raise TraceFormatError(
                    "not an ETRecord", path=path, expected="a zip file with the member ETRECORD_V0"
                )
            kept = {name: record.read(name) for name in names if not name.endswith(_HEAVY)}
    except (zipfile.BadZipFile, OSError) as error:
        raise TraceFormatError(
            "not an ETRecord", path=path, expected="a zip file", found=str(error)
        ) from error

    def write(part: Path) -> None:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as out:
            for name, content in kept.items():
                # a fixed date, so that equal records give equal files
                out.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)

    out = Path(target)
    write_file(out, write, force=force)
    return out
