// The trace files of one engine beside the ETDump: Perfetto or TREX, cumulative, always whole.
//
// A delegate's files, <stem> being file_stem() of core/engine_registry.hpp:
//   perfetto   <stem>.perfetto.json    trace-event JSON: the calls, phases and layers, at their own times
//   trex       <stem>.profile.json     layers in trtexec's shape;  <stem>.graph.json  layer information
// A package's engine (an operator inside an AOTInductor package), named as Torch-TensorRT names them:
//   <stem>_engine_execution_profile.trace   layers: perfetto (an event for each call) or trex
//   <stem>_input_profile.trace, <stem>_output_profile.trace, <stem>_enqueue_profile.trace   phases
//   <stem>_layer_information.json
//
// Written after the first call, then seldom enough to cost about a percent of the time, and at the end of the
// engine, of the process, of the configuration that asked for them, and when flush_sidecars() is called.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine_registry.hpp"
#include "core/error.hpp"
#include "core/layers.hpp"
#include "core/span.hpp"
#include "core/visibility.hpp"

namespace torchtrt_viz {

enum class SidecarKind : std::uint8_t { delegate, package };

class TORCHTRT_VIZ_API Sidecar {
 public:
  static std::shared_ptr<Sidecar> make(std::shared_ptr<EngineEntry> engine, SidecarKind kind);
  ~Sidecar();

  // Where to write from now on; what was collected for another place is written there first.
  void configure(Format format, const std::string& path_prefix);
  // Writes what is there and collects nothing until configured again.
  void stop();
  bool active() const noexcept { return active_; }

  void add(std::span<const SpanRecord> spans, const LayerTable& layers);
  void set_layer_information(std::string json);
  // Writes if the time for it has come.
  void maybe_flush();
  // Tries every file; then throws the first failure.
  void flush();

 private:
  struct LayerSum {
    std::string id, name, op;
    std::int64_t total_ns = 0;
    std::vector<std::int64_t> samples;  // ns of one call; a random choice of them once there are many
    std::uint64_t seen = 0;
    std::int64_t current_ns = 0;  // of the call being added
    bool in_current = false;
  };

  Sidecar(std::shared_ptr<EngineEntry> engine, SidecarKind kind);
  std::exception_ptr flush_locked();  // the first failure, which is on record, or null
  void write(const std::string& path, std::string_view text);
  void close_call();
  std::vector<std::string> unique_layer_names() const;
  std::string span_args(const SpanRecord& span) const;
  std::string summary() const;
  std::string perfetto() const;
  std::string trex() const;
  std::string package_layers() const;
  std::string package_phases(std::span<const NameId> phases) const;

  const std::shared_ptr<EngineEntry> engine_;
  const SidecarKind kind_;
  const std::string engine_id_, runtime_;
  bool active_ = false;  // changed and read under the engine's mutex
  mutable std::mutex mutex_;
  Format format_ = Format::perfetto;
  std::string prefix_;
  std::string stem_;
  std::vector<SpanRecord> spans_;
  std::int64_t dropped_ = 0;
  std::vector<LayerSum> layers_;
  std::vector<std::size_t> current_;
  std::optional<std::uint64_t> current_call_;
  std::int64_t calls_ = 0;  // calls with layers
  std::string layer_information_;
  std::uint64_t random_ = 0x9e3779b97f4a7c15ULL;
  bool dirty_ = false;
  bool failed_ = false;
  std::int64_t last_flush_ns_ = 0;
  std::int64_t flush_cost_ns_ = 0;
};

// Writes every engine's files that are behind: tries all, then throws the first failure.
TORCHTRT_VIZ_API void flush_sidecars();

}  // namespace torchtrt_viz
