"""What the name of a per-rank trace says: its writer, rank, role, host and cycle.

A name is the weakest evidence: what a manifest or the trace itself says about a rank goes before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

__all__ = ["NAME_PATTERNS", "RankName", "read_rank_name", "role_of_word"]

_MAX_NAME = 512
"""Names longer than this are not matched: no writer makes them, and matching stays cheap on hostile ones."""


@dataclass(frozen=True)
class RankName:
    """What one file name says. Fields that the name does not carry are None.

    Attributes
    ----------
    writer
        Which program names its files so ("vllm", "sglang", "torch", ...).
    what
        "trace", or what the file holds instead: "table", "memory", "merged", "frontend", "capture",
        "partial" (an export that was never finished).
    rank
        Rank as the name gives it; within which group is for the writer to know.
    local_rank
        Rank within its host.
    dims
        Parallel dimensions ("dp", "pp", "tp", ...) and their indices.
    role
        "prefill" or "decode", from the name or from a folder on the way.
    stage
        Part of the work that the file is about, where one rank writes several ("EXTEND", "DECODE").
    run
        Profile id or time stamp that files of one capture share, or that orders a rank's files.
    cycle
        Recording cycle, where the name counts them.
    """

    writer: str
    what: str = "trace"
    rank: int | None = None
    local_rank: int | None = None
    dims: dict[str, int] = field(default_factory=dict)
    role: str | None = None
    host: str | None = None
    pid: int | None = None
    stage: str | None = None
    run: str | None = None
    stamp: int | None = None
    cycle: int | None = None


_GZ = r"(?:\.gz)?"
_TORCH = rf"\.pt\.trace\.json{_GZ}"
_DIMS = r"dp(?P<dp>\d+)_pp(?P<pp>\d+)_tp(?P<tp>\d+)_dcp(?P<dcp>\d+)_ep(?P<ep>\d+)(?:_rank(?P<rank>\d+))?"

#: (writer, what the file holds, pattern of the whole file name), most specific first.
#: Groups named like fields of `RankName` fill them; the rest are parallel dimensions.
NAME_PATTERNS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (writer, what, re.compile(pattern))
    for writer, what, pattern in (
        ("torchtrt_viz", "trace", r"cycle-(?P<cycle>\d{5,})\.tar\.gz"),
        ("vllm", "trace", rf"(?:(?P<prefix>.+?)_)?{_DIMS}\.(?P<stamp>\d+){_TORCH}"),
        ("vllm", "table", rf"{_DIMS}\.profiler_out\.txt"),
        ("vllm", "table", r"profiler_out_(?P<rank>\d+)\.txt"),
        ("vllm", "frontend", rf"(?P<host>.+)_(?P<pid>\d+)\.async_llm\.(?P<stamp>\d+){_TORCH}"),
        ("vllm", "capture", rf"graph_capture_rank_(?P<local_rank>\d+)\.(?P<stamp>\d+){_TORCH}"),
        ("vllm", "capture", rf"graph_capture_rank_(?P<local_rank>\d+)\.json{_GZ}"),
        ("vllm", "trace", rf"(?P<run>[A-Za-z0-9-]+)-rank-(?P<rank>\d+)\.(?P<stamp>\d+){_TORCH}"),
        (
            "proton",
            "trace",
            rf"proton_(?:{_DIMS}|.+)_pid(?P<pid>\d+)_[0-9a-f]{{32}}_run(?P<cycle>\d+)\.(?:hatchet|hatchet_msgpack|chrome_trace)",
        ),
        ("sglang", "merged", r"merged-(?P<run>.+)\.trace\.json\.gz"),
        ("sglang", "trace", r"rpd-(?P<run>\d+\.\d+)-TP-(?P<tp>\d+)\.trace\.json\.gz"),
        ("sglang", "memory", r"(?:.+-)?(?P<run>\d+\.\d+)-TP-(?P<tp>\d+)-memory(?:-(?P<stage>\w+))?\.pickle"),
        ("sglang", "capture", r"cuda_graph_capture-.+-TP-(?P<tp>\d+)\.json\.gz"),
        (
            "sglang",
            "trace",
            r"(?P<run>.+?)-TP-(?P<tp>\d+)(?:-DP-(?P<dp>\d+))?(?:-PP-(?P<pp>\d+))?(?:-EP-(?P<ep>\d+))?"
            r"(?:-(?P<stage>[A-Za-z_.]+|\d))?\.trace\.json\.gz",
        ),
        ("sglang", "trace", r".+-rank(?P<rank>\d+)-(?P<run>\d+\.\d+)\.trace\.json"),
        (
            "sglang",
            "trace",
            r"(?P<run>.+-(?:full_stages|\d+_steps))-global-rank(?P<rank>\d+)\.trace\.json\.gz",
        ),
        (
            "sglang",
            "trace",
            rf"(?P<run>.+_batch\d+_input\d+_output\d+)(?:_(?P<stage>prefill|decode))?\.trace\.json{_GZ}",
        ),
        ("sglang", "trace", r"(?P<run>\d{9,}\.\d+)\.trace\.json\.gz"),
        ("tensorrt_llm", "trace", r"trtllm-trace-(?P<run>\d+-[0-9a-f]{8})-rank-(?P<rank>\d+)\.json"),
        (
            "kineto",
            "trace",
            rf"libkineto_(?:activities|trace)_(?:(?P<host>[A-Za-z][A-Za-z0-9.-]*)_)?(?:\d+_)?(?P<pid>\d+)\.json{_GZ}",
        ),
        ("composer", "trace", rf"rank(?P<rank>\d+)\.(?P<cycle>\d{{1,9}}){_TORCH}"),
        ("composer", "trace", r"(?P<run>ep\d+-ba(?P<cycle>\d+))-rank(?P<rank>\d+)\.json"),
        (
            "primus",
            "trace",
            rf"(?P<run>primus-megatron-exp\[[^\]]*\])-rank\[(?P<rank>\d+)\]\.(?P<stamp>\d+){_TORCH}",
        ),
        (
            "lightning",
            "trace",
            rf"(?:[A-Za-z_]+-)?(?:.+-)?(?P<local_rank>\d+)-\w*[A-Za-z]\.(?P<stamp>\d+){_TORCH}",
        ),
        ("torch", "trace", rf"rank[_-]?(?P<rank>\d+)\.(?P<stamp>\d{{10,}}){_TORCH}"),
        ("torch", "trace", rf"(?:trace_)?rank[_-]?(?P<rank>\d+)(?:_trace)?(?:_no_pyfn)?\.json{_GZ}"),
        ("torch", "trace", rf"(?P<host>.+)_(?P<pid>\d+)\.(?P<stamp>\d+){_TORCH}"),
        ("torch", "trace", rf"(?P<run>.+?)(?:\.(?P<stamp>\d+))?{_TORCH}"),
        ("tensorrt_llm", "trace", rf"(?P<run>.+)-rank-(?P<rank>\d+)\.json{_GZ}"),
        (
            "other",
            "trace",
            r"(?P<run>.*?)(?:^|[^A-Za-z])rank[_-]?(?P<rank>\d+)(?:[^0-9].*)?\.(?:json|etdp|pftrace|perfetto-trace)(?:\.gz|\.zst)?",
        ),
    )
)
_PARTIAL = re.compile(r"(?P<name>.+\.json)\.tmp(?:\.gz)?")
_TRACE_ENDING = re.compile(r"\.(?:json|etdp|pftrace|perfetto-trace|tar)(?:\.gz|\.zst)?$|\.tgz$")
_FOLDER_RANK = re.compile(r"(?:^|[^A-Za-z])rank[_-]?(?P<rank>\d+)(?![0-9])", re.IGNORECASE)
_FOLDER_CYCLE = re.compile(r"(?:iteration|cycle)[-_](?P<cycle>\d+)(?:\.tar\.gz|\.tgz)?")
_DIM_NAMES = ("dp", "pp", "tp", "dcp", "ep")
_NUMBERS = ("rank", "local_rank", "pid", "stamp", "cycle")
# SGLang formats its stage as an IntEnum: since Python 3.11 that prints a number.
_STAGES = {"1": "EXTEND", "2": "DECODE", "ForwardMode.EXTEND": "EXTEND", "ForwardMode.DECODE": "DECODE"}
_ROLE_WORDS = {
    "prefill": "prefill",
    "p": "prefill",
    "decode": "decode",
    "decoder": "decode",
    "d": "decode",
}
_MAX_NUMBER = 2**31 - 1
_MAX_STAMP = 2**63 - 1


def role_of_word(word: str) -> str | None:
    """Return "prefill" or "decode" for a word that names one (a folder "P", a prefix "decode-1")."""
    bare = re.sub(r"[-_.]?\d+$", "", word.strip().lower())
    return _ROLE_WORDS.get(bare)


def _numbers(groups: dict[str, str]) -> dict[str, int] | None:
    """Convert the numeric groups; None when one is beyond what any writer means."""
    out = {}
    for name in (*_NUMBERS, *_DIM_NAMES):
        if name in groups:
            value = int(groups.pop(name))
            if value > (_MAX_STAMP if name == "stamp" else _MAX_NUMBER):
                return None
            out[name] = value
    return out


def read_rank_name(name: str) -> RankName | None:
    """Read the name of a file, with the folders before it where they are known.

    Parameters
    ----------
    name
        ``folder/.../file``, as deep as it is known; both kinds of slashes.

    Returns
    -------
    RankName or None
        None when the name follows no known pattern.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    file = path.name
    if not file or len(file) > _MAX_NAME:
        return None
    folders = path.parts[-6:-1]
    partial = _PARTIAL.fullmatch(file)
    if partial is not None:
        inner = read_rank_name("/".join((*folders, partial["name"])))
        fields = {} if inner is None else dict(inner.__dict__)
        return RankName(**{**fields, "writer": fields.get("writer", "torch"), "what": "partial"})
    for writer, what, pattern in NAME_PATTERNS:
        match = pattern.fullmatch(file)
        if match is None:
            continue
        groups = {key: value for key, value in match.groupdict().items() if value}
        numbers = _numbers(groups)
        if numbers is None:
            continue
        return _filled(writer, what, groups, numbers, folders)
    if _TRACE_ENDING.search(file) and any(_FOLDER_RANK.search(folder[:_MAX_NAME]) for folder in folders):
        return _filled("other", "trace", {}, {}, folders)
    return None


def _filled(
    writer: str, what: str, groups: dict[str, str], numbers: dict[str, int], folders: tuple[str, ...]
) -> RankName:
    dims = {name: numbers.pop(name) for name in _DIM_NAMES if name in numbers}
    rank = numbers.pop("rank", None)
    cycle = numbers.pop("cycle", None)
    if rank is None and writer == "sglang" and set(dims) == {"tp"}:
        rank = dims["tp"]  # with one parallel dimension its index is the rank
    prefix = groups.get("prefix")
    role = role_of_word(prefix) if prefix else None
    stage = groups.get("stage")
    stage = _STAGES.get(stage, stage) if stage else None
    for folder in reversed(folders):
        if rank is None and (found := _FOLDER_RANK.search(folder[:_MAX_NAME])):
            number = int(found["rank"])
            rank = number if number <= _MAX_NUMBER else None
        if cycle is None and (step := _FOLDER_CYCLE.fullmatch(folder[:_MAX_NAME])):
            number = int(step["cycle"])
            cycle = number if number <= _MAX_NUMBER else None
        role = role or role_of_word(folder)
    return RankName(
        writer=writer,
        what=what,
        rank=rank,
        local_rank=numbers.get("local_rank"),
        dims=dims,
        role=role,
        host=groups.get("host"),
        pid=numbers.get("pid"),
        stage=stage,
        run=groups.get("run") or (prefix if prefix and role_of_word(prefix) is None else None),
        stamp=numbers.get("stamp"),
        cycle=cycle,
    )
