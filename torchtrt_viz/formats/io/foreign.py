"""Files that are no trace which this package reads, told by their first bytes: what they are, and what to do.

People name what lies beside a trace: the pointer that a repository holds instead of the file, another
profiler's database, a program, an error page that was saved under the trace's name. An error that says so
saves a search. The signatures are those of the formats' specifications and of ``file(1)``.
"""

from __future__ import annotations

import re
from functools import cache

from torchtrt_viz.formats.io.foreign_database import OTHER, RPD
from torchtrt_viz.formats.io.foreign_file import Foreign
from torchtrt_viz.formats.io.foreign_protobuf import foreign_protobuf, is_xspace

__all__ = ["told_by_head"]


_LOOKED_AT = 1 << 16
_NO_TRACE = "It is no trace: name the file that the profiler wrote"
_UNPACK = "Unpack it first: plain, gzip, zstandard, zip and tar files are read"
_NCU_EXPORT = (
    "It holds metrics of single kernels. Export the page, and load what that writes: "
    "ncu --import FILE --csv --page raw > STEM.csv"
)
_CHROME = "Its samples are no spans; record a trace (chrome://tracing, torch.profiler) instead"

_HTML = r"(?i:\s*(?:<!--[\s\S]{0,2000}?-->\s*)?<(?:!doctype html|html|head|body|script))"

#: Beginning of the content -> what it is, whatever else might take the content for its own.
_FIRST: tuple[tuple[str, Foreign], ...] = (
    (
        r"version https://(?:git-lfs|hawser)\.github\.com/spec/v1",
        Foreign(
            "a Git LFS pointer, not the file that it stands for",
            "Fetch the file itself: git lfs pull",
            in_place_of_a_trace=True,
        ),
    ),
    (
        r"/?(?:\.\./)*(?:\.git/)?annex/objects/",
        Foreign(
            "a git-annex pointer, not the file that it stands for",
            "Fetch the file: git annex get FILE",
            in_place_of_a_trace=True,
        ),
    ),
    (
        r"outs:\s*\n- (?:md5|etag|hash|size|path):",
        Foreign(
            "a DVC pointer, not the file that it stands for",
            "Fetch the file itself: dvc pull",
            in_place_of_a_trace=True,
        ),
    ),
    (r"SQLite format 3\x00(?![\s\S]*?rocpd_info_)[\s\S]*?rocpd_(?:api|op|kernelapi|copyapi)\b", RPD),
    (
        r"NVR\x00",
        Foreign(
            "a report of Nsight Compute (ncu-rep)",
            _NCU_EXPORT,
        ),
    ),
    (
        r"\x92\x83\xa5frame",
        Foreign(
            "a tree of Triton's Proton as MessagePack",
            "Write it as JSON: proton.finalize(session, output_format='hatchet')",
        ),
    ),
    (r"\x89HDF\r\n\x1a\n", Foreign("an HDF5 file", _NO_TRACE, False)),
    (r"\x93NUMPY", Foreign("a NumPy array", _NO_TRACE, False)),
    (
        r"ARROW1\x00\x00",
        Foreign("an Arrow (Feather) table", "Read it as the table that it is: pandas.read_feather(path)"),
    ),
    (r"%PDF-", Foreign("a PDF document", _NO_TRACE, False)),
    (r"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP", Foreign("a picture", _NO_TRACE, False)),
    (r"\x7fELF", Foreign("a program or library (ELF)", _NO_TRACE, False)),
    (r"MZ[\s\S]{58}", Foreign("a program or library of Windows", _NO_TRACE, False)),
    (r"[\xcf\xce]\xfa\xed\xfe|\xca\xfe\xba\xbe", Foreign("a program or library of macOS", _NO_TRACE, False)),
    (r"#!", Foreign("a script", _NO_TRACE, False)),
    (r"\x00asm|BC\xc0\xde", Foreign("compiled code", _NO_TRACE, False)),
    (r"BZh[1-9]1AY", Foreign("a file compressed with bzip2", _UNPACK)),
    (r"\xfd7zXZ\x00", Foreign("a file compressed with xz", _UNPACK)),
    (r"7z\xbc\xaf\x27\x1c", Foreign("a 7-Zip archive", _UNPACK)),
    (r"Rar!\x1a\x07", Foreign("a RAR archive", _UNPACK)),
    (r"\x04\x22\x4d\x18", Foreign("a file compressed with LZ4", _UNPACK)),
    (r"\x00\x05\x16[\x00\x07]", Foreign("a companion file of macOS (AppleDouble)", _NO_TRACE, False)),
    (
        r"\x80[\x02-\x05][\s\S]*?(?:segments|device_traces|allocator_settings)",
        Foreign(
            "a memory snapshot of torch (pickle)",
            "It holds allocations and no timeline: open it at https://docs.pytorch.org/memory_viz. Pickles "
            "are never loaded here, for they can run any code",
        ),
    ),
    (
        r"\x80[\x02-\x05](?:\x95[\s\S]{8}|\}|\]|c|X|\()",
        Foreign("a Python pickle", "Pickles are never loaded here, for they can run any code"),
    ),
    (r"PK\x03\x04", Foreign("a zip file that holds no trace", _NO_TRACE, False)),
    (r"[\s\S]{4}ET\d\d[\s\S]", Foreign("an ExecuTorch program (.pte)", "Run it: tv.Program(path)", False)),
    (
        r"[\s\S]{3}[\x00\x01\x02\x03\x04\x05]\x00\x00\x00\x00\{\s*\"",
        Foreign("tensors (safetensors)", _NO_TRACE, False),
    ),
    (
        r"GGUF[\x01-\x0f]\x00\x00\x00",
        Foreign("a model in GGUF", _NO_TRACE, False),
    ),
    (
        _HTML + r"[\s\S]*?(?:trace-data|systrace|linuxPerfData)",
        Foreign(
            "a page of systrace (HTML around ftrace text)",
            "Open it at https://ui.perfetto.dev, or convert it: traceconv json FILE FILE.json",
        ),
    ),
    (
        _HTML + r"[\s\S]*?torchtrt[-_]viz",
        Foreign(
            "a page, perhaps a report of this package", "Open it in a browser; load the trace that it is of"
        ),
    ),
    (
        _HTML,
        Foreign(
            "an HTML page and not the file that was asked for",
            "A download that needs a login, or failed, leaves one: open it in a browser to see what it says, "
            "and download the file again",
            in_place_of_a_trace=True,
        ),
    ),
    (
        r"\s*(?:<\?xml[\s\S]{0,200}?\?>\s*)?<Error>[\s\S]{0,400}?<Code>",
        Foreign(
            "the error message of an object store (XML) and not the file that was asked for",
            "Its <Code> says why (AccessDenied, NoSuchKey, an expired signature): download the file again",
            in_place_of_a_trace=True,
        ),
    ),
    (r"\s*<\?xml", Foreign("an XML document", _NO_TRACE, False)),
    (
        r"\s*# tracer: ",
        Foreign(
            "ftrace text",
            "Open it at https://ui.perfetto.dev, or convert it: traceconv json FILE FILE.json",
        ),
    ),
)

#: The same for content that is one of our formats' if that format says so.
_LATER: tuple[tuple[str, Foreign], ...] = (
    (
        r"SQLite format 3\x00",
        OTHER,
    ),
    (
        r"PAR1",
        Foreign(
            "a Parquet table",
            "Read it as the table that it is: pandas.read_parquet(path). Traces are loaded from the file "
            "that the profiler wrote",
        ),
    ),
    (
        r"(?:.*\n)?==\d+== NVPROF |(?:.*\n)?\"?Time\(%\)\"?,\"?Time\"?,|==\d+== Profiling",
        Foreign(
            "a table of nvprof",
            "Sums are no timeline: export a trace (nsys profile, torch.profiler) and load that",
        ),
    ),
    (
        r"\"?Time \(%\)\"?,\"?Total Time|\"?Start \(ns\)\"?,\"?Duration",
        Foreign("a table of nsys stats (CSV)", "Read it as a table: pandas.read_csv(path)"),
    ),
    (
        r"\"?Index\"?,\"?KernelName\"?|\"?Kind\"?,\"?(?:Agent_Id|Function|Domain)\"?|\"?Name\"?,\"?Calls\"?,\"?Total",
        Foreign(
            "a table of rocprof (CSV)",
            "Read it with pandas.read_csv, or record a trace: rocprofv3 --output-format pftrace",
        ),
    ),
    (
        r"\{\s*'(?:[^'\\\n]|\\.)*'\s*:",
        Foreign("the text of a Python dict, and no JSON", "Write it with json.dump, not with print or str"),
    ),
    (
        r"\s*\{\s*\}\s*\Z",
        Foreign(
            "an empty JSON object", "Nothing was recorded, or the export failed", in_place_of_a_trace=True
        ),
    ),
    (
        r"\s*\[\s*\]\s*\Z",
        Foreign("an empty JSON list", "Nothing was recorded, or the export failed", in_place_of_a_trace=True),
    ),
    (r"\s*(?:null|true|false|-?\d[\d.eE+-]*|\"[^\"\n]*\")\s*\Z", Foreign("a single JSON value", _NO_TRACE)),
    (
        r"\s*\{[\s\S]*?\"\$schema\"\s*:\s*\"https://www\.speedscope\.app",
        Foreign("a speedscope profile", "Open it at https://www.speedscope.app; it is not read here"),
    ),
    (
        r"\s*\{\s*\"nodes\"\s*:\s*\[\s*\{\s*\"id\"[\s\S]{0,400}?\"callFrame\"",
        Foreign("a CPU profile of V8 (.cpuprofile)", _CHROME),
    ),
    (
        r"\s*\{(?![\s\S]*\"traceEvents\")[\s\S]*?\"(?:samples|stackFrames)\"\s*:\s*[\[{]",
        Foreign('a profile of samples ("samples", "stackFrames") without trace events', _CHROME),
    ),
    (
        r"\s*\{(?![\s\S]*\"traceEvents\")[\s\S]*?\"(?:segments|device_traces)\"\s*:\s*\[",
        Foreign("a memory snapshot of torch", "It holds no timeline: https://docs.pytorch.org/memory_viz"),
    ),
    (
        r"\s*\{[\s\S]*?\"schema\"\s*:\s*\"[\d.]+-chakra",
        Foreign(
            "an execution trace of PyTorch (Chakra)",
            "It holds the graph and no times: load the Kineto trace that was recorded with it",
        ),
    ),
    (
        r"\s*\{[\s\S]{0,2000}?\"resourceSpans\"\s*:",
        Foreign("spans of OpenTelemetry (OTLP)", "They are not read here: open them in Jaeger or Tempo"),
    ),
    (
        r"\s*\{[\s\S]{0,4000}?\"(?:nbformat|cells)\"\s*:",
        Foreign("a notebook", "Open it in Jupyter", False),
    ),
    (
        r"\s*\{(?=[^\n]*\"ph\"\s*:)[^\n]*\}[ \t]*\r?\n\s*\{",
        Foreign("a line of JSON per trace event", "Put them into one list: jq -s . FILE > FILE.json"),
    ),
    (
        r"\s*\{[^\n]*\}[ \t]*\r?\n\s*\{",
        Foreign("JSON lines, as logs are written", _NO_TRACE),
    ),
)

#: End of a name -> what such a file is, where the content says nothing.
_ENDINGS: tuple[tuple[tuple[str, ...], Foreign], ...] = (
    (
        (".nsys-rep", ".qdrep"),
        Foreign(
            "a report of Nsight Systems (by its name), which that tool alone reads",
            "Export it, and load what that writes: nsys export --type sqlite --output STEM.sqlite FILE "
            "(or --type parquetdir --output STEM_pqtdir)",
        ),
    ),
    (
        (".qdstrm",),
        Foreign(
            "what Nsight Systems recorded before it made a report of it (by its name)",
            "Make the report, and export it: QdstrmImporter -i FILE; "
            "nsys export --type sqlite --output STEM.sqlite STEM.nsys-rep",
        ),
    ),
    (
        (".ncu-rep",),
        Foreign("a report of Nsight Compute (by its name), which that tool alone reads", _NCU_EXPORT),
    ),
    ((".nvvp", ".nvprof"), Foreign("a report of NVIDIA's profilers (by its name)", _NO_TRACE)),
    ((".pt", ".pth", ".ckpt"), Foreign("a checkpoint or program of torch (by its name)", _NO_TRACE, False)),
    ((".pt2",), Foreign("an exported program (.pt2)", "Run it under tv.profile()", False)),
    ((".pte",), Foreign("an ExecuTorch program (.pte)", "Run it: tv.Program(path)", False)),
    ((".npz", ".npy"), Foreign("NumPy arrays (by the name)", _NO_TRACE, False)),
    ((".whl", ".jar"), Foreign("a package (by its name)", _NO_TRACE, False)),
    ((".xlsx", ".docx", ".pptx"), Foreign("a document of an office program (by its name)", _NO_TRACE, False)),
    ((".csv",), Foreign("a table (by its name)", "Read it with pandas.read_csv(path)", False)),
    ((".pb",), Foreign("a protobuf of another kind (by its name)", _NO_TRACE)),
)


@cache
def _compiled(surely: bool) -> tuple[tuple[re.Pattern[bytes], Foreign], ...]:
    """Return the patterns, compiled when the first file is asked about."""
    if surely:
        return tuple((re.compile(pattern.encode("latin-1"), re.DOTALL), it) for pattern, it in _FIRST)
    return tuple((re.compile(pattern.encode("latin-1")), it) for pattern, it in _LATER)


def told_by_head(head: bytes, filename: str, *, surely: bool = False) -> Foreign | None:
    """Tell what a file is that is no trace; None where nothing is known of it.

    Parameters
    ----------
    head
        The first bytes of the uncompressed content; up to 64 KiB are looked at.
    surely
        Only what no reader of this package would rightly take for its own: to be asked first.
    """
    head = head[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf")
    name = filename.lower()
    by_name = next((it.of(filename) for endings, it in _ENDINGS if name.endswith(endings)), None)
    if head[:4] == b"PK\x03\x04" and by_name is not None:  # the name says more than the container
        return by_name
    found = _first_match(head, surely=True)
    found = None if found is None else found.of(filename)
    if found is None and is_xspace(head, filename):
        return None
    if found is None and (not surely or foreign_protobuf(head) is not None):
        found = foreign_protobuf(head, filename)
    if found is not None or surely or not head:
        return found
    return _first_match(head, surely=False) or by_name


def _first_match(head: bytes, *, surely: bool) -> Foreign | None:
    return next((it for pattern, it in _compiled(surely) if pattern.match(head)), None)
