// @ts-check
// Made from torchtrt_viz/scene/wire.py, which says how. Do not edit.

/** Per message its columns and the type of their values; "?": may be missing, is null then. */
export const MESSAGES = /** @type {const} */ ({
  open: {
    host_busy: "float32", // overview: busy share of the host's tracks, step by step
    gpu_busy: "float32", // the same of the GPU's tracks
    name_color: "uint8", // per name: its colour number
    name_kind: "uint8", // per name: its kind, a position in `kinds`
    start: "float64?", // per event, lane after lane
    dur: "float64?", // per event
    name: "int32?", // per event: its name's number, -1 for none
    row: "uint32?", // per event: its row in the scene
    lane_begin: "uint32?", // per lane: position of its first event
    lane_end: "uint32?", // per lane: position after its last event
  },
  view: {
    mode: "uint8", // per lane asked for: 0 empty, 1 its spans, 2 cells and the wide spans
    span_begin: "uint32", // per lane and once more: where its spans begin
    start: "float32", // per span, from the view's beginning
    dur: "float32", // per span
    row: "uint32", // per span: its row in the scene
    name: "uint16", // per span: position in `names`
    marked: "uint8", // per span: 1 if marked; empty while nothing is marked
    cell_busy: "uint8", // per cell, lane after lane: busy share, 255 is all of it
    cell_name: "uint16", // per cell: position in `names` of what fills most of it
    cell_marked: "uint8", // per cell: marked share; empty while nothing is marked
    names: "int32", // numbers of the names that occur
  },
  counters: {
    low: "float32", // lowest value per pixel column, counter after counter; NaN for none
    high: "float32", // highest value, in the same way
  },
  marks: {
    names: "uint8?", // per name: 1 if marked
    rows: "uint8?", // per row of the scene: 1 if marked
  },
  page: {
    host_busy: "uint8", // overview: busy share of the host's tracks, 255 is all
    gpu_busy: "uint8", // the same of the GPU's tracks
    name_color: "uint8", // per name: its colour number
    name_kind: "uint8", // per name: its kind, a position in `kinds`
    start: "float64", // per event, lane after lane
    dur: "float64", // per event
    name: "int32", // per event: its name's number, -1 for none
    row: "uint32", // per event: its row in the scene
    lane_begin: "uint32", // per lane: position of its first event
    lane_end: "uint32", // per lane: position after its last event
    covered: "float64", // per event: what its children take of it
    iteration: "int32", // per event: -1 for none
    depth: "int32", // per event: nesting depth within its track, -1 for none
    kind: "int32", // per event: its kind less that of its name
    run: "int32", // per event: position in `runs`, -1 for none
    correlation: "float64", // per event: -1 for none
    share: "uint8?", // per event: busy share of a block, 255 is all
    stands: "int32?", // per event: spans that it stands for
    story_row: "float64", // per story of device work: row of the work
    story_host: "float64", // per story: row of the launching call, -1 none
    story_operator: "float64", // per story: row of the operator, -1 none
    story_queued: "float64", // per story: from launch to start
    story_ahead: "int32", // per story: pieces that it waited for
    story_module: "int32", // per story: position in `stories`, -1 none
    story_shapes: "int32", // per story: position in `stories`, -1 none
    flow_source: "float64", // per link: row where it begins
    flow_target: "float64", // per link: row where it ends
    flow_name: "int32", // per link: position in `flow_names`
    counter_end: "uint32", // per counter: position after its last sample
    counter_time: "float64", // per sample
    counter_value: "float64", // per sample; NaN where it is not a finite number
  },
});
