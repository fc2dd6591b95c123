"""The rows of a timeline: tracks in groups, groups in a host and a GPU section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model.places import process_label
from torchtrt_viz.model.threads import known_text, os_threads
from torchtrt_viz.scene.track_words import track_texts

if TYPE_CHECKING:
    from torchtrt_viz.scene.scene import Part, Scene

__all__ = ["Role", "Track", "TrackKey", "TrackLane", "arrange"]

Role = Literal["spans", "modeled", "annotations", "instants", "implausible"]
_PSEUDO_PROCESSES = ("Spans", "Traces")  # of torch's profiler
_IDLE = 0.01  # of the busiest track's busy time
_ORDER: tuple[Role, ...] = ("annotations", "spans", "modeled", "implausible", "instants")


@dataclass(frozen=True)
class TrackKey:
    """One set of events that is laid out together.

    These are the events of one row of ``trace.tracks`` that have one domain and one role: device
    annotations are no device work, modeled times were not observed, implausible ones cannot be true, instants
    have no duration, and none of them shares a lane with measured spans. ``flat`` lays overlaps side by side
    instead of nesting them.
    """

    part: int
    track: int
    domain: Literal["host", "gpu"]
    role: Role
    flat: bool


@dataclass(frozen=True)
class TrackLane:
    """One drawn row of a track: a lane of the index and what it holds."""

    lane: int
    role: Role


@dataclass
class Track:
    """One track as it is shown.

    Attributes
    ----------
    id : str
        The same for the same trace every time, so that a stored layout stays valid.
    group : str
        Rank, process or device that it belongs to, as shown.
    collapsed : int
        The lane that stands for the whole track when it is collapsed.
    busy_ns : int
        Time that its measured spans cover (their union), in ns.
    name : str
        The label that the file has.
    process, thread, stream : str or None
        What a search calls them.
    device, rank : int
        -1 for none.
    recording : bool
        It holds what a recorder notes of itself, and no work.
    idle : bool
        Next to nothing happens on it, measured by the busiest track of its section.
    """

    id: str
    label: str
    section: Literal["host", "gpu"]
    group: str
    type: str
    collapsed: int
    busy_ns: int
    spans: int = 0
    instants: int = 0
    name: str = ""
    process: str | None = None
    thread: str | None = None
    stream: str | None = None
    device: int = -1
    rank: int = -1
    recording: bool = False
    idle: bool = False
    lanes: list[TrackLane] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the track as the front end reads it."""
        return {
            "id": self.id,
            "label": self.label,
            "name": self.name,
            "section": self.section,
            "group": self.group,
            "type": self.type,
            "collapsed": self.collapsed,
            "busy": self.busy_ns,
            "spans": self.spans,
            "instants": self.instants,
            "process": self.process,
            "thread": self.thread,
            "stream": self.stream,
            "device": self.device,
            "rank": self.rank,
            "recording": self.recording,
            "idle": self.idle,
            "lanes": [lane.lane for lane in self.lanes],
            "roles": [lane.role for lane in self.lanes],
        }


def arrange(parts: Sequence[Part], keys: Sequence[TrackKey], scene: Scene) -> list[Track]:
    """Put the laid-out sets of events into tracks, in the order of the screen."""
    together: dict[tuple[int, int, str], list[int]] = {}
    for number, key in enumerate(keys):
        together.setdefault((key.part, key.track, key.domain), []).append(number)
    placed: list[tuple[tuple[Any, ...], Track]] = []
    words = [track_texts(part.trace.tracks) for part in parts]
    threads = [os_threads(part.trace) for part in parts]
    for (part, row, domain), numbers in together.items():
        numbers.sort(key=lambda number: _ORDER.index(keys[number].role))
        info = parts[part].trace.tracks.iloc[row]
        home = _home(parts[part].trace.tracks, threads[part], row)
        section: Literal["host", "gpu"] = "gpu" if domain == "gpu" else "host"
        label = str(info["label"])
        if domain != info["domain"]:
            label += " (GPU work)" if domain == "gpu" else " (host work)"
        main = next((n for n in numbers if keys[n].role == "spans"), numbers[0])
        collapsed = scene.collapsed_lane(main)
        track = Track(
            id=f"{part}.{row}.{section}",
            label=label,
            section=section,
            group=_group(parts[part], home, section),
            type=str(info["type"]),
            collapsed=collapsed,
            busy_ns=0,
            name=str(info["label"]),
            process=words[part]["process"][row],
            thread=words[part]["thread"][row],
            stream=words[part]["stream"][row],
            device=_number(info["device"]),
            rank=_number(info["rank"]),
        )
        for number in numbers:
            lanes = scene.lanes_of(number)
            role = keys[number].role
            track.lanes += [TrackLane(lane, role) for lane in lanes]
            count = int((scene.lane_end[lanes].astype(np.int64) - scene.lane_begin[lanes]).sum())
            if role == "instants":
                track.instants += count
            else:
                track.spans += count
            if role == "spans":
                track.busy_ns = int(scene.lane_busy[scene.collapsed_lane(number)])
        roles = {keys[number].role for number in numbers}
        track.recording = section == "host" and _is_recorders(parts[part], row, info, roles)
        # Tracks without spans (a process that only marks events) come after those that worked; those of one
        # thread stand together, whoever recorded them.
        first = int(threads[part][row])
        order = (section != "host", part, track.spans == 0, int(home["sort_index"]), first, row)
        placed.append((order, track))
    quiet = _mark_idle([track for _, track in placed])
    placed.sort(key=lambda item: (*item[0][:2], item[1].id in quiet, *item[0][2:]))
    # Tracks of one group stay together, groups in the order of their first track.
    groups: dict[tuple[str, str], int] = {}
    for _, track in placed:
        groups.setdefault((track.section, track.group), len(groups))
    return [track for _, track in sorted(placed, key=lambda item: groups[(item[1].section, item[1].group)])]


def _home(tracks: Any, threads: NDArray[np.int64], row: int) -> Any:
    """Return the track that says of which process a track's thread is: not every recorder does."""
    same = np.flatnonzero(threads == threads[row])
    named = [at for at in same.tolist() if known_text(tracks["process"].iloc[at]) is not None]
    return tracks.iloc[named[0] if named else row]


def _is_recorders(part: Part, row: int, info: Any, roles: set[Role]) -> bool:
    """Say whether a track holds what a recorder notes of itself, or what it could give to no thread."""
    if roles - {"modeled", "instants"}:
        return False
    if "modeled" in roles:
        spans = part.trace.spans
        kinds = spans["kind"].array[np.flatnonzero(spans["track"].to_numpy() == row)]
        return bool((kinds == "other").all())
    return known_text(info["thread"]) is None or info["process"] in _PSEUDO_PROCESSES


def _mark_idle(tracks: Sequence[Track]) -> set[str]:
    """Find the tracks on which next to nothing happens; they are idle where folding them saves room."""
    found: set[str] = set()
    for section in ("host", "gpu"):
        mine = [track for track in tracks if track.section == section and not track.recording]
        most = max((track.busy_ns for track in mine), default=0)
        quiet = [track for track in mine if track.busy_ns < _IDLE * most]
        found |= {track.id for track in quiet}
        # what is modeled repeats work of other tracks: it is in no sum, and still worth a look
        quiet = [track for track in quiet if "modeled" not in {lane.role for lane in track.lanes}]
        if sum(len(track.lanes) for track in quiet) > 1:
            for track in quiet:
                track.idle = True
    return found


def _number(value: Any) -> int:
    import pandas as pd

    return -1 if pd.isna(value) else int(value)


def _group(part: Part, info: Any, section: str) -> str:
    import pandas as pd

    words = []
    rank = -1 if pd.isna(info["rank"]) else int(info["rank"])
    if part.label:
        words.append(part.label)
    if rank >= 0 and not f"{part.label} ".startswith(f"rank {rank} "):
        words.append(f"rank {rank}")
    if section == "gpu" and not pd.isna(info["device"]):
        words.append(f"GPU {int(info['device'])}")
    elif process := process_label(info["process"], info.get("process_name")):
        words.append(f"process {process}" if process.isdigit() else process)
    return " · ".join(words)
