// Chrome trace-event JSON (the "JSON Array" and "JSON Object" forms), written event by event.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/io/trace_table.hpp"

namespace torchtrt_viz {

class TraceJson {
 public:
  enum class Form : std::uint8_t { array, object };
  explicit TraceJson(Form form);

  // Names of a process and of one of its rows.
  void track(std::int64_t pid, std::string_view process, std::int64_t tid, std::string_view thread);
  // A complete event; `args` is a JSON object or empty.
  void slice(std::string_view name, std::string_view category, std::int64_t pid, std::int64_t tid,
             std::int64_t start_ns, std::int64_t dur_ns, std::string_view args);
  // As slice(), with a process that is a name and not a number, as Torch-TensorRT writes it.
  void named_slice(std::string_view name, std::string_view process, std::int64_t tid, std::int64_t start_ns,
                   std::int64_t dur_ns, std::string_view args);
  // The whole text. `metadata`, a JSON object, goes into "otherData" of the object form.
  std::string finish(std::string_view metadata);

 private:
  void begin();
  void metadata_event(std::string_view what, std::int64_t pid, std::int64_t tid, std::string_view name);
  Form form_;
  bool first_ = true;
  std::int64_t last_pid_ = INT64_MIN;
  std::string out_;
};

// A whole table in the object form; `metadata` as for TraceJson::finish().
std::string trace_json(const TraceTable& table, const std::string& metadata);

}  // namespace torchtrt_viz
