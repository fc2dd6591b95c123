// Spans in columns as a Perfetto trace (protos/perfetto/trace/trace_packet.proto).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/io/trace_table.hpp"

namespace torchtrt_viz {

// `unix_base_ns`: the wall clock at start_ns == 0. Spans of a track that overlap without nesting go to
// further tracks of the same name.
std::string trace_protobuf(const TraceTable& table, std::optional<std::int64_t> unix_base_ns);

}  // namespace torchtrt_viz
