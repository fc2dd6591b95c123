"""Columns of the tables over the ranks of a session."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.answers import SUMMARY
from torchtrt_viz.analysis.columns.by_name import OPERATORS
from torchtrt_viz.analysis.columns.sorts import amount, count, ns, number, percent, rate, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = [
    "BY_ROLE",
    "COLLECTIVES",
    "COLLECTIVE_TOTALS",
    "EXPLAIN",
    "OPERATORS_OVER_RANKS",
    "RANKS",
    "RANK_OPERATORS",
    "RANK_SUMMARY",
    "REQUESTS",
    "REQUEST_EVENTS",
    "ROLES",
    "SKEW",
    "STEPS",
    "STEP_IMBALANCE",
    "STRAGGLERS",
    "STRIPS",
    "TOTALS",
    "VERDICT",
]

_SESSION = text("session", "id of the session; missing: nothing says it")
_RANK = count("rank", "number of the rank, unique within a session; NA: nothing says it", "Int32")
_ROLE = text("role", "prefill, decode, ...; missing: nothing says it")
_INSTANCE = text("instance", "replica; missing: nothing says it")
_HOST = text("host", "machine; missing: nothing says it")
_CYCLE = count("cycle", "recording cycle, from 0; NA: nothing says it", "Int32")
_STAGE = text("stage", "stage of the work that the recording is of; missing: nothing says it")
_KEYS = (_SESSION, _RANK, _ROLE, _INSTANCE, _HOST, _CYCLE, _STAGE)
_WHO = (_SESSION, _RANK, _ROLE, _INSTANCE, _HOST)

RANKS = FrameSchema(
    "session.ranks",
    (
        *_KEYS,
        text("state", "ok, damaged, staged (recorded but not packed yet) or missing"),
        text("error", "why it is not ok"),
        text("format", "format of the recording"),
        text(
            "what",
            "trace, or merged, frontend, capture for what is not one rank's work; dump: of a Flight Recorder",
        ),
        text("writer", "who wrote it; missing: nothing says it"),
        text("path", "where it lies"),
        count("pid", "process id; NA: nothing says it", "Int64"),
        text("device", "device that the rank says it uses; missing: nothing says it"),
        count("world_size", "ranks that there should be; NA: nothing says it", "Int32"),
        ns(
            "start_unix_ns",
            "start of the recording by the rank's own clock, Unix time; NA: nothing says it",
            "Int64",
        ),
        ns("stop_unix_ns", "its end by the rank's own clock, Unix time; NA: nothing says it", "Int64"),
        Column(
            "cut_at_start", "object", "tuple of the requests that were in flight when the recording began"
        ),
        Column("cut_at_stop", "object", "tuple of the requests that were in flight when it ended"),
    ),
    "one row per recording: a rank has one per cycle",
)

TOTALS = FrameSchema(
    "session.totals",
    (
        *_KEYS,
        count("spans", "spans of the recording", "Int64"),
        ns("length_ns", "first start to last end of everything measured", "Int64", title="length"),
        ns(
            "operators_ns",
            "self host time of operators on all threads, summed: work, not wall time; NA without operators",
            "Int64",
            title="host self in operators",
        ),
        ns(
            "gpu_span_ns",
            "first to last device work, summed over the rank's devices; NA without device work",
            "Int64",
            title="GPU span",
        ),
        ns("gpu_busy_ns", "time with device work; NA as above", "Int64", title="GPU busy"),
        ns("gpu_compute_ns", "time with compute; NA as above", "Int64", title="GPU computing"),
        ns(
            "gpu_communication_ns", "time with communication; NA as above", "Int64", title="GPU communicating"
        ),
        ns(
            "gpu_exposed_ns",
            "time with communication alone; NA as above",
            "Int64",
            title="GPU only communicating",
        ),
        count("warnings", "repairs that loading made", "Int64"),
        count("synthetic", "whether the recording says that it is made up", "bool"),
    ),
    "one row per recording: its totals",
)

ROLES = FrameSchema(
    "session.roles",
    (
        _SESSION,
        _ROLE,
        count("ranks", "ranks of the role"),
        count("hosts", "machines they are on"),
        count(
            "requests", "requests that its ranks prefilled or decoded; NA where no range names one", "Int64"
        ),
        number("steps_per_rank", "steps of a rank on average", title="steps a rank"),
        ns(
            "step_median_ns",
            "median over all steps and ranks, each by its rank's clock",
            "Float64",
            title="median step (host)",
        ),
        ns("step_p90_ns", "90th percentile of the same", "Float64", title="p90 step (host)"),
        count("slowest_rank", "rank with the longest median step", "Int64"),
        percent(
            "slowest_pct",
            "how much longer than the median rank's that is",
            title="its median step over the median rank's",
        ),
        ns(
            "operators_ns",
            "host time in operators of one rank on average",
            "Float64",
            title="host in operators, a rank",
        ),
        ns(
            "gpu_busy_ns",
            "device time with work of one rank on average; apart from host time, neither contains the other",
            "Float64",
            title="GPU busy, a rank",
        ),
        percent("gpu_busy_pct", "of the ranks' device spans: with work", title="of GPU span busy"),
        percent(
            "gpu_exposed_pct",
            "of the ranks' device spans: with communication that nothing hides",
            title="of GPU span only communicating",
        ),
    ),
    "one row per session and role: prefill against decode",
)

BY_ROLE = FrameSchema(
    "session.by_role",
    (
        text(
            "name",
            "name of the operator; after it for each role `<role>_self_pct` (% of the role's own self host "
            "time, Float64), `<role>_call_ns` (self host time of one call on average, ns, Float64) and "
            "`<role>_calls` (Int64); NA where the role does not run it",
        ),
    ),
    "one row per operator on the host, with three columns a role; none unless there are several roles",
)

OPERATORS_OVER_RANKS = FrameSchema(
    "session.operators",
    (
        text("session", "only where there are several"),
        text(
            "role",
            "only where there are several: prefill and decode ranks do different work and are not compared",
        ),
        text("name", "name of the operator; after it one column per entry of `by`"),
        count("ranks", "ranks that ran the operator"),
        count("calls", "calls on all ranks and cycles"),
        ns(
            "total_ns",
            "inclusive host time, summed over ranks, which run at the same time: a sum of work, not wall "
            "time",
            title="host total (with children)",
        ),
        ns("self_ns", "self host time, summed over ranks", title="host self, all ranks"),
        percent(
            "self_pct",
            "self_ns in percent of the column's sum (of the role's, where roles are told apart)",
            title="of host self",
        ),
        ns(
            "rank_mean_ns",
            "self time of one rank (all its cycles), mean over the ranks that ran the operator",
            "float64",
            title="host self, mean rank",
        ),
        ns("rank_min_ns", "the same, least", title="host self, least"),
        ns("rank_max_ns", "the same, most", title="host self, most"),
        count("max_rank", "number of the rank with the most", "Int32", title="most on rank"),
        number(
            "imbalance",
            "rank_max_ns over rank_mean_ns: 1 is even; NA where nothing was spent",
            title="most over mean",
        ),
    ),
    "one row per operator on the host (and role): sums over ranks, and how unevenly the work lies",
)

RANK_OPERATORS = FrameSchema(
    "session.operators(per_rank=True)",
    (*_KEYS, *OPERATORS.columns),
    "one row per rank and operator on the host",
)

STEPS = FrameSchema(
    "session.steps",
    (
        *_KEYS,
        count(
            "step",
            "number that the engine or the profiler counts where it is recorded, else the position from 0",
        ),
        text(
            "step_kind",
            "what the engine's step did: prefill, decode, mixed, or its own word; missing where unsaid",
        ),
        text("name", "name of the step"),
        ns("start_ns", "start on that rank's own base"),
        ns("dur_ns", "duration by that rank's clock"),
        ns(
            "median_ns",
            "median over the ranks of the same session, role and cycle that have a step of this number: "
            "equal counts, not the same moment and not necessarily the same work",
            "float64",
        ),
        ns("behind_ns", "dur_ns less the median", "float64"),
    ),
    "one row per rank and step",
)

STEP_IMBALANCE = FrameSchema(
    "session.step_imbalance",
    (
        _SESSION,
        _ROLE,
        _CYCLE,
        count("step", "number of the step: equal counts, not the same moment"),
        count("ranks", "ranks that have it"),
        ns("min_ns", "duration on a rank, each by its own clock, least", title="shortest (host)"),
        ns("median_ns", "median of the same", "float64", title="median (host)"),
        ns("max_ns", "most of the same", title="longest (host)"),
        percent("over_pct", "the longest over the median", title="longest over median"),
        count("slowest_rank", "rank that took longest", "Int32"),
    ),
    "one row per step that at least two ranks of a session, role and cycle have",
)

COLLECTIVES = FrameSchema(
    "session.collectives",
    (
        _SESSION,
        _ROLE,
        _CYCLE,
        text("name", "name of the collective"),
        text("domain", "host or gpu: whose time is compared"),
        text("group", "process group as recorded; missing: the record says none, as on the host"),
        count("number", "occurrence, from 0, per name and group"),
        count("ranks", "ranks that were in it"),
        ns("min_ns", "time in it on a rank, least: the transfer"),
        ns("max_ns", "time in it on a rank, most"),
        count("last_rank", "number of the rank that entered last", "Int32"),
        ns("wait_ns", "time that the other ranks spent beyond the shortest, summed"),
    ),
    "one row per collective that the ranks of a group recorded equally often",
)

COLLECTIVE_TOTALS = FrameSchema(
    "session.collective_totals",
    (
        _SESSION,
        _ROLE,
        text("name", "name of the collective"),
        text("domain", "host or gpu", title="time on"),
        count("collectives", "occurrences compared over ranks"),
        count("groups", "process groups, 0 where none is recorded"),
        ns(
            "wait_ns",
            "time that ranks waited for the last one, summed over ranks and occurrences",
            title="waited, all ranks",
        ),
        ns("mean_wait_ns", "the same of one occurrence, mean", "float64", title="waited, mean of one"),
        ns("max_wait_ns", "the same of one occurrence, most", title="waited, most in one"),
        count("last_rank", "rank that cost the others most", "Int32", title="most for rank"),
        percent("last_pct", "its part of wait_ns", title="of the waiting for it"),
    ),
    "one row per name of collectives",
)

STRAGGLERS = FrameSchema(
    "session.stragglers",
    (
        *_WHO,
        ns(
            "waited_for_ns",
            "time that other ranks spent in collectives waiting for this one to enter, summed over them; "
            "NA without comparable collectives",
            "Int64",
            title="others waited for it",
        ),
        count("last_in", "collectives that it entered last", "Int64", title="collectives entered last"),
        count("steps", "steps that at least two ranks of its session and role have", "Int64"),
        ns("step_ns", "their durations on this rank, summed", "Int64", title="in steps (host)"),
        ns(
            "behind_ns",
            "sum over steps of the difference from the median rank",
            "float64",
            title="behind the median rank",
        ),
        percent("behind_pct", "the same in percent of the median's sum", title="of the median's steps"),
        count("slowest", "steps in which it took longest", "Int64", title="slowest in steps"),
    ),
    "one row per rank, the one that others wait for most first",
)

SKEW = FrameSchema(
    "collective_skew",
    (
        text("group", "process group; missing: not recorded"),
        text("group_ranks", "its ranks, as recorded"),
        count("sequence", "number of the collective in it"),
        text("collective", "all_reduce, all_gather, ..."),
        count("ranks", "ranks that recorded it"),
        count(
            "missing_ranks", "ranks of the group that did not; NA: the group's size is not recorded", "Int64"
        ),
        amount("message_bytes", "size of the message; NA: not recorded"),
        ns(
            "transfer_ns",
            "duration on the rank that arrived last: the transfer without waiting",
            title="transfer (GPU)",
        ),
        count("last_rank", "that rank", "Int32"),
        ns(
            "mean_wait_ns",
            "time that ranks waited for it, mean over all ranks, the last one's 0 included",
            "float64",
            title="mean wait (GPU)",
        ),
        ns("max_wait_ns", "time that a rank waited for it, most", title="longest wait (GPU)"),
        count("first_rank", "the rank that waited longest", "Int32"),
        rate(
            "algorithm_gbps",
            "message_bytes per transfer_ns; NA without a size",
            title="algorithm, 10^9 byte/s",
        ),
        rate(
            "bus_gbps",
            "the same times the traffic of a ring per byte; NA without a size",
            title="bus, 10^9 byte/s",
        ),
    ),
    "one row per collective on devices that at least two ranks recorded with its group",
)

REQUEST_EVENTS = FrameSchema(
    "session.request_events",
    (
        *_KEYS,
        text(
            "phase", "schedule, queue, prefill, decode, sampling, kv_send, kv_recv, activate or another name"
        ),
        text(
            "request",
            "id of the request, filled in from the transfer where a rank names only that; missing: none",
        ),
        text("transfer", "id of the transfer; missing: the range names none"),
        count("tokens", "tokens; NA where the range does not say", "Int64"),
        count("batch", "requests that share the range: its duration is theirs together"),
        ns("start_ns", "start on the trace's base"),
        ns("dur_ns", "duration on the host"),
        ns("start_unix_ns", "start by the rank's clock, Unix time; NA when the base is unknown", "Int64"),
        count(
            "cut",
            "True when the rank reported the request as in flight at a boundary of the recording: part of "
            "its work is not in the trace",
            "bool",
        ),
    ),
    "one row per request and annotated range of a rank",
)

REQUESTS = FrameSchema(
    "session.requests",
    (
        _SESSION,
        text("request", "id of the request"),
        text("transfer", "id of its transfer; missing: no range names one"),
        count(
            "prefill_rank",
            "rank that prefilled it (the lowest number of several); NA: no range says so",
            "Int32",
        ),
        count(
            "decode_rank",
            "rank that decoded it (the lowest number of several); NA: no range says so",
            "Int32",
        ),
        count(
            "prefill_ranks",
            "how many prefilled it: a tensor-parallel group, or those it moved between",
            "Int64",
        ),
        count("decode_ranks", "how many decoded it", "Int64"),
        ns(
            "queue_ns",
            "host time of the ranges named queue; NA where the engine records none",
            "Int64",
            title="queue (host)",
        ),
        ns(
            "prefill_ns",
            "host time of its prefill ranges on all its ranks; a range shared by a batch counts in full "
            "for each of its requests, so the column must not be added up where `batched` is true",
            "Int64",
            title="prefill (host)",
        ),
        ns("kv_send_ns", "host time of its ranges kv_send, as above", "Int64", title="KV send (host)"),
        ns("kv_recv_ns", "host time of its ranges kv_recv, as above", "Int64", title="KV receive (host)"),
        ns("decode_ns", "host time of its decode ranges, as above", "Int64", title="decode (host)"),
        ns(
            "decode_queue_ns",
            "from the end of kv_recv to the first decode range of the same rank, by its own clock (the "
            "longest, where several ranks did both); NA where no rank recorded both",
            "Int64",
            title="received, not yet decoded",
        ),
        count("decode_steps", "decode ranges that name it", "Int64"),
        count("batched", "whether any of its ranges is shared with other requests", "bool"),
        ns(
            "handoff_ns",
            "from the end of prefill to the start of the first decode range; NA unless all its ranks are "
            "on one host (clocks of different hosts are not aligned) and record Unix time",
            "Int64",
            title="prefill's end to first decode",
        ),
        count("cut", "whether a boundary of the recording cut it", "bool", title="cut by a boundary"),
        count(
            "joined",
            "whether both a prefill and a decode range name it",
            "bool",
            title="prefill and decode found",
        ),
    ),
    "one row per request: what prefill, transfer and decode ranks spent on it",
)

STRIPS = FrameSchema(
    "session.strips",
    (
        *_KEYS,
        text("domain", "host: any thread in work of its own; gpu: any stream with work"),
        ns("length_ns", "first start to last end of everything measured"),
        ns("busy_ns", "union of the side's work"),
        Column(
            "shares",
            "object",
            "bytes: busy share of each of `bins` equal parts of the length, in 255ths, rounded up so that "
            "nothing short disappears",
        ),
    ),
    "one row per rank and side that recorded work: how busy it was over its recording",
)

EXPLAIN = FrameSchema(
    "session.explain",
    (
        text("finding", "a sentence with its numbers"),
        ns("impact_ns", "time at stake; NA where it is none", "Float64"),
        text("source", "the table it comes from"),
    ),
    "one row per finding; who hangs comes first, then who keeps others waiting",
)

VERDICT = FrameSchema(
    "session.verdict",
    (
        count("number", "place in the list, from 1"),
        text("finding", "the finding in a few words"),
        text("evidence", "what proves it, a sentence with numbers and units"),
        ns(
            "could_save_ns",
            "by how much the ranks could be faster, at most, as `basis` says; NA where it cannot be said. "
            "Findings overlap: what they could save is not added",
            "Float64",
            title="could save",
        ),
        percent("could_save_pct", "in percent of the longest recording", title="of the longest recording"),
        text("basis", "what could_save_ns rests on, or why it is NA"),
        ns(
            "at_stake_ns",
            "the time that the finding is about; NA where it is none",
            "Float64",
            title="at stake",
        ),
        text("kind", "hang, late rank, imbalance, steps, roles or requests"),
        text("table", "the table that proves it, a field of `Session.overview`"),
        text("frame", "an expression that makes this table; `session` is the session in it"),
    ),
    "one row per finding; who hangs first, then the most time that could be saved",
)

RANK_SUMMARY = FrameSchema(
    "session.summary", (*_KEYS, *SUMMARY.columns), "one row per rank and total of its capture"
)
