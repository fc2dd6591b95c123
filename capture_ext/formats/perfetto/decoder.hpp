// A Perfetto trace as columns.
//
// Format: protos/perfetto/trace/trace.proto in google/perfetto. The trace is read twice: once for the clock
// snapshots, then packet by packet in the order of the file, as interned strings and defaults require.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/perfetto/annotations.hpp"
#include "formats/perfetto/clocks.hpp"
#include "formats/perfetto/gpu_events.hpp"
#include "formats/perfetto/slices.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/tracks.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

// What was mended, left out or not understood.
enum class Problem : std::uint8_t {
  kTruncated,          // the last packet is cut: offset of its beginning
  kDamagedPacket,      // a packet does not read as one
  kDamagedMessage,     // a message inside a packet does not
  kMissingState,       // an event relies on state that was lost with earlier packets
  kMissingString,      // an interned id was never defined
  kNoTime,             // an event without a time, or with one that does not fit
  kOtherClock,         // a time on a clock that no snapshot relates to the trace's
  kUnusedLegacyPhase,  // an event of a legacy phase that is not read
  kCompressed,         // packets inside of packets, which the caller should have unpacked
  kNoValue,            // a counter's event without a value
  kLegacyFlow,         // an event's end of a flow in the trace-event format's form, which is not read
  kCount,
};

struct Tally {
  std::uint64_t count = 0;
  std::uint64_t offset = 0;  // in the trace, of the first
};

struct Count {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

// What became of every packet: each is counted once, by the field of TracePacket that holds its data (0: it
// has none). Bytes are those of whole packets, tag and length included.
struct Accounting {
  std::map<std::uint32_t, Count> read;
  std::map<std::uint32_t, Count> unread;
  std::map<std::uint64_t, Count> unread_events;  // track events by type
  std::map<char, Count> unread_phases;           // events of the trace-event format by phase
  Count left_out[static_cast<std::size_t>(Problem::kCount)];
  std::map<std::uint32_t, Count> other_fields;  // fields of Trace that are no packets
  std::uint64_t cut_bytes = 0;                  // behind the last whole packet
  std::uint64_t bytes = 0;
  std::uint64_t identified = 0;  // packets with a time or a sequence, as only traces have them
};

struct Trace {
  Strings strings;
  Slices slices;
  Counters counters;
  Tracks tracks;
  Arguments arguments;
  Tally problems[static_cast<std::size_t>(Problem::kCount)];
  Accounting accounting;
  std::vector<std::pair<std::string, std::string>> metadata;  // of ChromeEventBundle: name, value
  std::uint32_t clock = 0;                                    // id of the clock that times are on
  std::optional<std::int64_t> unix_offset;                    // Unix time less time on it
  std::uint64_t packets = 0;
};

// Reads as much as is whole. Memory is proportional to the size of the trace.
Trace decode(Bytes trace);

struct CompressedPackets {
  std::uint64_t begin;  // of the packet, its tag included
  std::uint64_t end;
  std::uint64_t content;  // of the compressed bytes
  std::uint64_t size;
  bool zstd;
};
// Where a trace holds compressed packets, which stand for the packets inside them.
std::vector<CompressedPackets> find_compressed(Bytes trace);

}  // namespace torchtrt_viz::perfetto
