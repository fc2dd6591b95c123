// Spans in columns as trace files that other tools read: Chrome trace-event JSON and Perfetto's protobuf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

struct TraceTable {
  struct Track {
    std::int64_t pid = 0;
    std::string process;
    std::string thread;
  };
  std::vector<std::string> names;
  std::vector<std::string> categories;
  std::vector<Track> tracks;
  std::span<const std::int32_t> name;      // row of `names`
  std::span<const std::int32_t> category;  // row of `categories`; empty: none has one
  std::span<const std::int32_t> track;     // row of `tracks`
  std::span<const std::int64_t> start_ns;
  std::span<const std::int64_t> dur_ns;
  std::vector<std::string> args;  // a JSON object for each span, "" for none; empty: none has any

  // Columns of one length, rows that exist, no negative duration.
  Status check() const;
};

// JSON object form; `metadata` is a JSON object for "otherData", or empty.
TORCHTRT_VIZ_API Status trace_json(const TraceTable& table, const std::string& metadata, std::string& out);

// A Perfetto trace (protos/perfetto/trace/trace_packet.proto). `unix_base_ns`: the wall clock at start_ns ==
// 0. Spans of a track that overlap without nesting go to further tracks of the same name.
TORCHTRT_VIZ_API Status trace_protobuf(const TraceTable& table, std::optional<std::int64_t> unix_base_ns,
                                       std::string& out);

}  // namespace torchtrt_viz
