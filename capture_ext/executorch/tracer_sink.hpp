// A call's spans as events of the runtime's tracer, and a delegate's failures as the runtime's errors.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/event_tracer.h>

#include <string>

#include "core/engine_registry.hpp"
#include "core/error.hpp"
#include "core/instrumented_engine.hpp"

namespace torchtrt_viz::et {

// The metadata of "torchtrt.delegate" that is the same for every call: an open JSON object.
std::string delegate_metadata(const EngineInfo& engine);

class TracerSink final : public ReportSink {
 public:
  // Both have to outlive the sink.
  TracerSink(executorch::runtime::EventTracer* tracer, const std::string& metadata)
      : tracer_(tracer), metadata_(metadata) {}

  // A tracer that wants no operators gets no layers: those are operators.
  Level limit() const override;
  void report(const CallReport& report) override;

 private:
  std::string call_metadata(const CallReport& report) const;
  executorch::runtime::EventTracer* tracer_;
  const std::string& metadata_;
};

// For `catch (...)` in a delegate: logs the failure that is being handled, keeps its words for whoever asks
// (last_error.hpp), and gives the code to return.
executorch::runtime::Error delegate_failure(const char* backend, const char* where) noexcept;

}  // namespace torchtrt_viz::et
