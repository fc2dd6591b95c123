"""What the name of a per-rank trace says: its writer, rank, role, host and cycle.

A name is the weakest evidence: what a manifest or the trace itself says about a rank goes before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

__all__ = [
    "NAME_PATTERNS",
    "RankName",
    "looks_like_host",
    "read_dump_name",
    "read_rank_name",
    "role_of_word",
]

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
        "dump" (of a Flight Recorder), "partial" (an export that was never finished).
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
    number
        A number that may be a rank: "trace_3.json" is rank 3 of some programs, and step 3 of others. Only the
        names beside it tell.
    series
        The path without that number: the same for the files that it numbers.
    node
        Folder or word that stands for a machine ("node0"), which is not what the machine is called.
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
    number: int | None = None
    series: str | None = None
    node: str | None = None


_GZ = r"(?:\.gz)?"
_TORCH = rf"\.pt\.trace\.json{_GZ}"
_ENDING = r"\.(?:json|etdp|pftrace|perfetto-trace)(?:\.gz|\.zst)?"
#: "rank0", "Rank-0", "RANK_0", "rank=0", "rank[0]", and "global_rank0"; "local_rank0" counts within a host.
_RANK_WORD = (
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=R))(?<!local)(?<!local[_-])"
    r"(?:[Rr]ank|RANK)[_=\[-]?(?P<rank>\d+)\]?(?![0-9])"
)
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
        ("sglang", "capture", rf"bs_\d{{1,7}}_rank(?P<rank>\d+)\.json{_GZ}"),
        (
            "other",
            "capture",
            rf"(?:graph_)?capture(?:_trace)?_rank_(?P<local_rank>\d+)(?:\.pt\.trace)?\.json{_GZ}",
        ),
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
        ("torchtune", "trace", rf"r(?P<rank>\d+)-\d{{4}}-[\d-]+\.(?P<stamp>\d+){_TORCH}"),
        ("tensorrt_llm", "trace", rf"(?P<run>.+)-rank-(?P<rank>\d+)\.json{_GZ}"),
        # a number that is called a rank is one, whatever else the name looks like
        (
            "torch",
            "trace",
            rf"(?P<run>.*?){_RANK_WORD}(?P<rest>[^0-9].*?)??(?:\.(?P<stamp>\d{{10,}}))?{_TORCH}",
        ),
        ("other", "trace", rf"(?P<run>.*?){_RANK_WORD}(?:[^0-9].*)?{_ENDING}"),
        # MindStudio and TraceLens write "merged.json", users' scripts "combined_trace.json", "all_ranks.json"
        ("other", "merged", rf"(?:.*[_.-])?(?:merged|combined|all[_-]ranks)(?:[_.-].*)?\.json{_GZ}"),
        (
            "torch",
            "trace",
            rf"(?:.*[_-])?local[_-]?rank[_=-]?(?P<local_rank>\d+)(?:\.(?P<stamp>\d{{10,}}))?{_TORCH}",
        ),
        ("other", "trace", rf"(?:.*[_-])?local[_-]?rank[_=-]?(?P<local_rank>\d+)(?:[^0-9].*)?{_ENDING}"),
        (
            "torch",
            "trace",
            rf"worker[_-](?P<rank>\d+)(?:_(?P<cycle>\d{{1,9}}))?(?:\.(?P<stamp>\d{{10,}}))?{_TORCH}",
        ),
        ("torch", "trace", rf"(?P<host>.+)_(?P<pid>\d+)\.(?P<stamp>\d+){_TORCH}"),
        ("torch", "trace", rf"(?P<run>.+?)(?:\.(?P<stamp>\d+))?{_TORCH}"),
        # numbers that are ranks in some programs and steps in others: see `RankName.number`
        (
            "other",
            "trace",
            rf"(?:trace|profile|gpu|trace[_-]gpu|prof|kineto|worker)[_-]?(?P<number>\d+){_ENDING}",
        ),
    )
)
#: Names of a Flight Recorder's dumps: a prefix of the user's, and the rank; some put the host between.
_DUMP_ENDING = re.compile(r"(?:\.(?:json|pkl|pickle|bin|dump|log|txt))?(?:\.gz|\.zst)?$", re.IGNORECASE)
_DUMP_HOST = re.compile(r".*?[Rr]ank[_-]<?(?P<host>[A-Za-z][A-Za-z0-9.-]*)>?_(?P<rank>\d+)")
_DUMP_RANK = re.compile(_RANK_WORD)
_DUMP_NUMBER = re.compile(r".*?(?P<rank>\d+)")
_PARTIAL = re.compile(r"(?P<name>.+\.json)\.tmp(?:\.gz)?")
_TRACE_ENDING = re.compile(r"\.(?:json|etdp|pftrace|perfetto-trace|tar)(?:\.gz|\.zst)?$|\.tgz$")
_FOLDER_RANK = re.compile(_RANK_WORD)
_FOLDER_WORKER = re.compile(r"worker[_=-](?P<rank>\d+)", re.IGNORECASE)
_DIM = re.compile(
    r"(?<![A-Za-z0-9])(?P<name>tp|dp|pp|ep|cp|TP|DP|PP|EP|CP)[_=-]?(?P<index>\d{1,9})(?![0-9A-Za-z])"
)
_FOLDER_ASCEND = re.compile(r"(?P<host>.+)_(?P<pid>\d+)_(?P<stamp>\d{14,17})_ascend_(?:pt|ms)")
#: Folders and parts of names that stand for a machine: "node0", "host-b", "machine_3".
_NODE = re.compile(r"(?:node|host|machine)[_=-]?\d+|host[_-][\w.-]+", re.IGNORECASE)
_NODE_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(?:node|machine|host)[_-]?\d+(?![0-9])", re.IGNORECASE)
#: A host's name (RFC 1123, and underscores, which machines have all the same).
_HOST = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?)*"
)
#: Words that stand before a number in names of traces, and are no machine.
_NO_HOST = re.compile(
    r"(?:.*_)?(?:local|global|(?:local[_-]?|global[_-]?)?rank|worker|gpu|npu|xpu|cuda|cpu|device|dev|trace|profile|profiler|prof|kineto|"
    r"step|iter|iteration|epoch|batch|cycle|run|train|training|eval|test|infer|inference|warmup|proc|process|"
    r"pid|tp|dp|pp|ep|cp|stage|model|output|result|results|log|export|bs|seq|len|v)\d*",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?:^|[^A-Za-z])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[_. -]?\d{1,2}(?![0-9])"
    r"|(?:19|20)\d\d[_.-]?[01]?\d[_.-]?[0-3]?\d(?![0-9])|(?<![0-9])[0-3]?\d[_.-][01]?\d[_.-](?:19|20)\d\d"
)
_FOLDER_CYCLE = re.compile(r"(?:iteration|cycle)[-_](?P<cycle>\d+)(?:\.tar\.gz|\.tgz)?")
_DIM_NAMES = ("dp", "pp", "tp", "dcp", "ep")
_NUMBERS = ("rank", "local_rank", "pid", "stamp", "cycle", "number")
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


def looks_like_host(text: str) -> bool:
    """Whether a part of a file's name may name a machine: no date, no number, no word for a rank."""
    if len(text) > 253 or _HOST.fullmatch(text) is None or not re.search(r"[A-Za-z]", text):
        return False
    return not (_NO_HOST.fullmatch(text) or _DATE.search(text) or re.search(_RANK_WORD, text))


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
        filled = _filled(writer, what, groups, numbers, folders)
        if filled.number is None:
            return filled
        return replace(filled, series=_without("/".join((*folders, file)), match.span("number"), len(file)))
    if not _TRACE_ENDING.search(file):
        return None
    found = _filled("other", "trace", {}, {}, folders)
    if found.rank is None:
        known = "/".join((*folders, file))
        parts = list(_DIM.finditer(known))
        if len({part["name"].lower() for part in parts}) > 1:
            found = replace(found, dims={part["name"].lower(): int(part["index"]) for part in parts})
        elif len(parts) == 1:  # "tp0" is a rank among tp0, tp1, ...; "tp4" alone is how many there were
            found = replace(
                found, number=int(parts[0]["index"]), series=_without(known, parts[0].span("index"))
            )
    jax = len(folders) > 2 and folders[-3:-1] == ("plugins", "profile")
    host = file.split(".trace.json")[0]
    if jax and host != file and looks_like_host(host) and host != "perfetto_trace":
        found = replace(found, writer="jax", host=host)  # "<host>.trace.json.gz" beside "<host>.xplane.pb"
    told = (found.rank, found.host, found.node, found.pid, found.number, found.dims or None)
    return found if any(value is not None for value in told) else None


def read_dump_name(name: str) -> RankName:
    """Read the name of a Flight Recorder's dump, with the folders before it where they are known.

    torch writes ``<prefix><rank>``: the number at the end is the rank, whatever stands before it.

    Parameters
    ----------
    name
        ``folder/.../file``, as deep as it is known; both kinds of slashes.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    stem = _DUMP_ENDING.sub("", path.name[-_MAX_NAME:])
    found = _DUMP_RANK.search(stem) or _DUMP_HOST.fullmatch(stem) or _DUMP_NUMBER.fullmatch(stem)
    groups = {} if found is None else {key: value for key, value in found.groupdict().items() if value}
    numbers = _numbers(groups) or {}
    return _filled("torch", "dump", groups, numbers, path.parts[-6:-1])


def _without(path: str, span: tuple[int, int], file: int | None = None) -> str:
    """Cut a number out of a path; ``span`` counts from the file's name where its length is given."""
    base = 0 if file is None else len(path) - file
    return f"{path[: base + span[0]]}#{path[base + span[1] :]}"


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
    host, run, pid = groups.get("host"), groups.get("run"), numbers.get("pid")
    if host is not None and not looks_like_host(host):
        run, host, pid = run or host, None, None  # the number behind what is no host is no process id
    stamp = numbers.get("stamp")
    node = None
    for folder in reversed(folders):
        short = folder[:_MAX_NAME]
        found = _FOLDER_RANK.search(short) or _FOLDER_WORKER.fullmatch(short)
        if rank is None and found:
            number = int(found["rank"])
            rank = number if number <= _MAX_NUMBER else None
        if cycle is None and (step := _FOLDER_CYCLE.fullmatch(short)):
            number = int(step["cycle"])
            cycle = number if number <= _MAX_NUMBER else None
        if ascend := _FOLDER_ASCEND.fullmatch(short):
            writer = "torch_npu"
            host = host or (ascend["host"] if looks_like_host(ascend["host"]) else None)
            pid = int(ascend["pid"]) if pid is None and int(ascend["pid"]) <= _MAX_NUMBER else pid
            stamp = int(ascend["stamp"]) if stamp is None else stamp
        if node is None and _NODE.fullmatch(short):
            node = short
        role = role or role_of_word(folder)
    if node is None and run and (within := _NODE_IN_NAME.search(run)):
        node = within[0]
        run = None  # what names a machine names no run
    run = run.strip("_.-") if run else None
    if run is not None and (rank is not None and (_NO_HOST.fullmatch(run) or _DATE.search(run))):
        run = None
    return RankName(
        writer=writer,
        what=what,
        rank=rank,
        local_rank=numbers.get("local_rank"),
        dims=dims,
        role=role,
        host=host,
        node=node,
        pid=pid,
        stage=stage,
        run=run or (prefix if prefix and role_of_word(prefix) is None else None),
        stamp=stamp,
        cycle=cycle,
        number=numbers.get("number") if rank is None else None,
    )
