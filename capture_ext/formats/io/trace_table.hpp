// Spans in columns, for the writers of the formats: formats/kineto/trace_json.hpp and
// formats/perfetto/trace_protobuf.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

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

  // Throws unless the columns have one length, rows exist and no duration is negative.
  void check() const;
};

}  // namespace torchtrt_viz
