"""Write seeds for the Perfetto harness into a folder: one small trace for each construct.

python tests/fuzz/perfetto_seeds.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from perfetto_gpu import (
    ARGUMENT_NAMES,
    COUNTERS,
    KERNELS,
    context,
    counter_spec,
    counters,
    interned_gpu,
    specification,
    stage,
)
from perfetto_messages import (
    BEGIN,
    COUNTER,
    END,
    INSTANT,
    annotation,
    compressed,
    counter,
    event,
    field,
    fixed64,
    interned,
    mark,
    message,
    packet,
    process,
    snapshot,
    thread,
    track,
)


def seeds() -> dict[str, bytes]:
    """Return name -> trace."""
    slices = mark(10, event(BEGIN, "a", track=5, category=["x", "gpu"])) + mark(20, event(END, track=5))
    names = interned({1: {1: "c"}, 2: {1: "n"}, 3: {1: "size"}, 29: {1: "text"}})
    arguments = (
        annotation(1, [1, 2.5, "x", {"k": True}])
        + annotation("correlation", 7)
        + field(4, message({10: "s", 17: 1}))
    )
    legacy = field(23, "x") + field(6, message({2: ord("X"), 3: 5, 6: 9, 18: 1, 19: 2}))
    nested = field(4, message({10: "o", 8: message({1: 1, 2: "k", 3: message({1: 2, 4: message({5: 3})})})}))
    return {
        "slices": process(1, 2, "p") + thread(5, 1, 2, 3, "t") + slices,
        "interned": names
        + mark(10, event(BEGIN, 1, track=5, category=1, extra=arguments), flags=2)
        + mark(30, event(END, track=5), flags=2),
        "defaults": packet({59: message({11: message({11: 7, 31: [8]}), 58: 64}), 13: 1})
        + snapshot({6: 1000, 64: 5}, c64=(10, True))
        + mark(3, event(INSTANT, "i", extra=field(12, 4))),
        "clocks": snapshot({6: 10, 3: 100, 1: 10**18})
        + snapshot({3: 500, 200: 7})
        + mark(9, event(INSTANT, "i", track=1), more={58: 200}),
        "counters": counter(9, "c", unit=3, multiplier=4, incremental=True)
        + mark(1, event(COUNTER, track=9, extra=field(30, 5)))
        + mark(2, event(COUNTER, track=9, extra=field(44, 0.5))),
        "flows": mark(1, event(BEGIN, "a", track=1, extra=fixed64(47, 5)))
        + mark(2, event(BEGIN, "b", track=2, extra=fixed64(48, 5) + field(36, 3)))
        + mark(3, event(END, track=2))
        + mark(4, event(END, track=1)),
        "legacy": packet({44: message({1: 1, 2: 2, 5: "t", 6: 9}), 13: 1})
        + mark(5, legacy)
        + packet({11: field(1, 3) + field(9, INSTANT)}),
        "nested": mark(1, event(BEGIN, "a", track=1, extra=nested)) + mark(2, event(END, track=1)),
        "lost": packet({42: True}) + mark(2, event(INSTANT, 1, track=1), flags=2),
        "compressed": compressed(slices) + track(5, "lane", parent=1),
        "stages": interned_gpu(
            context(1, 42),
            specification(1, "queue", description="d"),
            specification(2, "gemm"),
            field(KERNELS, message({1: 3, 2: "k", 3: "k()", 4: "sm", 5: message({1: 4, 4: 64})})),
            field(ARGUMENT_NAMES, message({1: 4, 2: "registers"})),
        )
        + mark(5, event(BEGIN, "launch", track=1, extra=field(3000, field(1, 7)) + annotation("corr_id", 3)))
        + mark(9, event(END, track=1))
        + stage(10, 20, event=7, queue=1, stage=2, context=1, gpu=0, submission=9, kernel=3, target=500)
        + stage(40, 5, event=8, queue=1, stage=2, waits=[7], name="n", launch=message({1: message({1: 8})}))
        + packet({8: 41, 65: field(2, message({1: 3, 2: 42, 3: 43, 6: 9}))})
        + packet({65: field(1, message({1: 42, 3: 24, 4: 500, 5: "target"}))}),
        "stages_2019": packet(
            {
                8: 1,
                53: field(7, message({1: message({1: 5, 2: 7}), 2: message({1: "q"}), 3: message({1: "s"})})),
            }
        )
        + stage(10, 20, event=1, old_queue=0, old_stage=0, flags=0, extra=message({1: "a", 2: "b"})),
        "gpu_counters": counters(1, {}, descriptor=counter_spec(1, "c", [37], [22, 22]), gpu=1)
        + counters(2, {1: 5, 2: 0.5})
        + interned_gpu(field(COUNTERS, message({1: 3, 2: counter_spec(1, "own", [29]), 3: 2})))
        + counters(3, {1: 7}, iid=3)
        + packet({8: 4, 71: message({1: 0, 2: 42, 3: 600})})
        + packet({8: 4, 129: message({1: 1, 2: 900})})
        + packet({8: 5, 63: message({1: 4, 2: "tag", 3: "said"})}),
        "process_tree": packet(
            {2: message({1: [message({1: 7, 3: "app"})], 2: [message({1: 8, 2: "worker", 3: 7})]})}
        )
        + packet({60: message({1: 1, 4: message({1: 7, 2: 8}), 3000: message({1: 2})})})
        + mark(1, event(BEGIN, "a", track=1))
        + mark(2, event(5, track=1))
        + mark(3, event(END, track=1))
        + packet({1: b"\x08\x01"}),
        "metadata": packet({5: field(2, message({1: "torchtrt_viz", 2: '{"version":1}'}))}),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds().items():
        (folder / name).write_bytes(data)
