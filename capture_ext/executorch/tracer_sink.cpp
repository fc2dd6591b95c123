#include "executorch/tracer_sink.hpp"

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/platform/log.h>

#include <utility>

#include "executorch/last_error.hpp"
#include "executorch/ticks.hpp"
#include "formats/io/json_text.hpp"
#include "host_engine/et_types.hpp"

namespace torchtrt_viz::et {

namespace rt = executorch::runtime;

std::string delegate_metadata(const EngineInfo& engine) {
  std::string out;
  JsonObject(out)
      .integer("schema", 1)
      .text("method", engine.identity.method)
      .text("engine", engine.engine_id)
      .text("engine_name", engine.identity.name)
      .text("engine_runtime", engine.identity.runtime)
      .integer("instance", engine.instance);
  return out;
}

Level TracerSink::limit() const {
  const bool operators =
      tracer_->event_tracer_profiling_level() > rt::EventTracerProfilingLevel::kProfileMethodOnly;
  return operators ? Level::layers : Level::phases;
}

namespace {

// How the times were got and where they were spent; the call, where it is not the one that reports. Closes
// the object.
void append_place(std::string& json, const SpanRecord& span, std::uint64_t call) {
  json.append("\"timing\":\"").append(kTimingNames[static_cast<std::size_t>(span.timing)]);
  json.append(span.on_device ? "\",\"domain\":\"gpu\"" : "\",\"domain\":\"host\"");
  if (span.call != call) json.append(",\"call\":").append(std::to_string(span.call));
  json += '}';
}

}  // namespace

// The identifiers are strings, so the integer one is "unset": a tracer takes exactly one of the two.
void TracerSink::report(const CallReport& report) {
  const bool layers = limit() == Level::layers;
  std::string text;
  for (const auto& span : report.spans) {
    text.clear();
    const char* name = nullptr;
    if (span.layer >= 0) {
      if (!layers) continue;
      const auto& layer = report.layers[span.layer];
      name = layer.id.c_str();
      text = layer.metadata;
      text += ',';
      append_place(text, span, report.call);
    } else {
      name = name_text(span.name).data();  // of a std::string: ends with a NUL
      if (span.kind == SpanKind::delegate) text = call_metadata(report);
      if (span.on_device) {
        text = "{";
        append_place(text, span, report.call);
      }
    }
    rt::event_tracer_log_profiling_delegate(
        tracer_, name, static_cast<rt::DebugHandle>(rt::kUnsetDelegateDebugIntId), ticks_of(span.start_ns),
        ticks_of(span.end_ns), text.empty() ? nullptr : text.data(), text.size());
  }
}

std::string TracerSink::call_metadata(const CallReport& report) const {
  std::string text = metadata_;
  text.append(",\"call\":").append(std::to_string(report.call));
  text.append(",\"level\":\"").append(level_name(report.engine.level));
  text.append("\",\"level_source\":\"").append(level_source_name(report.engine.level_source));
  text.append(report.failure == nullptr ? "\",\"status\":\"ok\"" : "\",\"status\":\"failed\"");
  if (report.failure != nullptr) {
    text += ",\"error\":";
    append_json_string(text, report.failure->what());
  }
  return text + "}";
}

rt::Error delegate_failure(const char* backend, const char* where) noexcept try {
  auto failure = current_failure();
  ET_LOG(Error, "%s %s: %s", backend, where, failure.what());
  const auto error = to_error(failure.code());
  set_last_error(std::move(failure));
  return error;
} catch (...) {
  return rt::Error::Internal;
}

}  // namespace torchtrt_viz::et
