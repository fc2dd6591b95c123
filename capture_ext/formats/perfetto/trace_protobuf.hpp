// Spans in columns as a Perfetto trace (protos/perfetto/trace/trace_packet.proto).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.hpp"
#include "formats/io/trace_table.hpp"

namespace torchtrt_viz {

// `unix_base_ns`: the wall clock at start_ns == 0. Spans of a track that overlap without nesting go to
// further tracks of the same name.
Status trace_protobuf(const TraceTable& table, std::optional<std::int64_t> unix_base_ns, std::string& out);

}  // namespace torchtrt_viz
