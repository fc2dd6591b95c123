#include "core/sidecar.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "core/atomic_file.hpp"
#include "core/clock.hpp"
#include "formats/engine/trex_profile.hpp"
#include "formats/io/json_text.hpp"
#include "formats/kineto/trace_json.hpp"

namespace torchtrt_viz {
namespace {

constexpr std::size_t kSpansKept = 1U << 18U;
constexpr std::size_t kSamplesKept = 4096;
constexpr std::int64_t kFlushEveryNs = 1'000'000'000;
constexpr std::int64_t kFlushShare = 100;  // at most 1/100 of the time goes into writing

struct LivingSidecars {
  std::mutex mutex;
  std::vector<std::weak_ptr<Sidecar>> sidecars;
};

// Never destroyed: the files are completed while the process ends.
LivingSidecars& living_sidecars() {
  static LivingSidecars* const instance = new LivingSidecars;  // NOLINT
  return *instance;
}

void remember(const std::shared_ptr<Sidecar>& sidecar) {
  static const int registered = std::atexit([] { regardless([] { flush_sidecars(); }); });
  (void)registered;
  const std::lock_guard lock(living_sidecars().mutex);
  std::erase_if(living_sidecars().sidecars, [](const auto& other) { return other.expired(); });
  living_sidecars().sidecars.push_back(sidecar);
}

std::int64_t median(std::vector<std::int64_t> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

NameId phase_name(Phase phase) { return intern_name(kPhaseNames[static_cast<std::size_t>(phase)]); }

}  // namespace

std::shared_ptr<Sidecar> Sidecar::make(std::shared_ptr<EngineEntry> engine, SidecarKind kind) {
  std::shared_ptr<Sidecar> sidecar(new Sidecar(std::move(engine), kind));
  remember(sidecar);
  return sidecar;
}

Sidecar::Sidecar(std::shared_ptr<EngineEntry> engine, SidecarKind kind)
    : engine_(std::move(engine)),
      kind_(kind),
      engine_id_(engine_->info().engine_id),
      runtime_(engine_->info().identity.runtime) {}

Sidecar::~Sidecar() {
  regardless([this] { flush(); });
}

void Sidecar::configure(Format format, const std::string& path_prefix) {
  const std::lock_guard lock(mutex_);
  if (active_ && format == format_ && path_prefix == prefix_) return;
  (void)flush_locked();
  if (format != format_ || path_prefix != prefix_ || stem_.empty()) {
    format_ = format;
    prefix_ = path_prefix;
    stem_ = file_stem(engine_->info());
    spans_.clear();
    layers_.clear();
    dropped_ = calls_ = last_flush_ns_ = 0;
    current_call_.reset();
    current_.clear();
  }
  failed_ = false;
  active_ = true;
}

void Sidecar::stop() {
  const std::lock_guard lock(mutex_);
  (void)flush_locked();
  active_ = false;
}

void Sidecar::close_call() {
  for (const auto row : current_) {
    auto& layer = layers_[row];
    layer.total_ns += layer.current_ns;
    // Reservoir sampling: every call is equally likely to be among those kept.
    if (layer.samples.size() < kSamplesKept) {
      layer.samples.push_back(layer.current_ns);
    } else {
      random_ ^= random_ << 13U;
      random_ ^= random_ >> 7U;
      random_ ^= random_ << 17U;
      if (const auto at = random_ % (layer.seen + 1); at < kSamplesKept) layer.samples[at] = layer.current_ns;
    }
    layer.seen += 1;
    layer.current_ns = 0;
    layer.in_current = false;
  }
  calls_ += current_.empty() ? 0 : 1;
  current_.clear();
}

void Sidecar::add(std::span<const SpanRecord> spans, const LayerTable& layers) {
  const std::lock_guard lock(mutex_);
  for (const auto& info : std::span(layers.rows()).subspan(std::min(layers_.size(), layers.rows().size()))) {
    LayerSum row;
    row.id = info.id;
    row.name = info.name;
    row.op = info.op.empty() ? info.kernel : info.op;
    layers_.push_back(std::move(row));
  }
  for (const auto& span : spans) {
    if (spans_.size() < kSpansKept) {
      spans_.push_back(span);
    } else {
      dropped_ += 1;
    }
    if (span.layer < 0) continue;
    if (current_call_ != span.call) {
      close_call();
      current_call_ = span.call;
    }
    const auto row = static_cast<std::size_t>(span.layer);
    auto& layer = layers_[row];
    layer.current_ns += span.end_ns - span.start_ns;
    if (!std::exchange(layer.in_current, true)) current_.push_back(row);
  }
  dirty_ = true;
}

void Sidecar::set_layer_information(std::string json) {
  const std::lock_guard lock(mutex_);
  layer_information_ = std::move(json);
}

void Sidecar::maybe_flush() {
  const std::lock_guard lock(mutex_);
  if (!dirty_ || failed_) return;
  const auto since = monotonic_ns() - last_flush_ns_;
  if (last_flush_ns_ == 0 || since > std::max(kFlushEveryNs, kFlushShare * flush_cost_ns_))
    (void)flush_locked();
}

void Sidecar::flush() {
  const std::lock_guard lock(mutex_);
  if (const auto failure = flush_locked()) std::rethrow_exception(failure);
}

void Sidecar::write(const std::string& path, std::string_view text) {
  try {
    write_file(path, text);
  } catch (const Error& failure) {
    engine_->update([&](EngineInfo& info) { info.last_error = failure.what(); });
    if (!std::exchange(failed_, true)) {
      std::fprintf(stderr,
                   "torchtrt_viz: %s; no more files of this engine until the profile options change\n",
                   failure.what());
    }
    throw;
  }
  engine_->update([&](EngineInfo& info) {
    if (std::find(info.files.begin(), info.files.end(), path) == info.files.end()) info.files.push_back(path);
  });
}

std::exception_ptr Sidecar::flush_locked() {
  if (!active_ || !dirty_) return nullptr;
  close_call();
  current_call_.reset();
  const auto begin = monotonic_ns();
  const std::string base = prefix_ + (prefix_.back() == '/' ? "" : "/") + stem_;
  std::vector<std::pair<std::string, std::string>> files;
  if (kind_ == SidecarKind::delegate && format_ == Format::perfetto) {
    files.emplace_back(base + ".perfetto.json", perfetto());
  } else if (kind_ == SidecarKind::delegate && format_ == Format::trex) {
    files.emplace_back(base + ".profile.json", trex());
    if (!layer_information_.empty()) files.emplace_back(base + ".graph.json", layer_information_);
  } else if (kind_ == SidecarKind::package) {
    const std::array inputs{phase_name(Phase::input_binding), phase_name(Phase::shape_inference)};
    const std::array outputs{phase_name(Phase::output_binding), phase_name(Phase::output_staging),
                             phase_name(Phase::synchronize)};
    const std::array enqueue{phase_name(Phase::enqueue_host), intern_name(kDeviceTimeName)};
    files.emplace_back(base + "_engine_execution_profile.trace",
                       format_ == Format::trex ? trex() : package_layers());
    files.emplace_back(base + "_input_profile.trace", package_phases(inputs));
    files.emplace_back(base + "_output_profile.trace", package_phases(outputs));
    files.emplace_back(base + "_enqueue_profile.trace", package_phases(enqueue));
    if (!layer_information_.empty()) files.emplace_back(base + "_layer_information.json", layer_information_);
  }
  std::exception_ptr first;
  for (const auto& [path, text] : files) {
    try {
      write(path, text);
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  dirty_ = false;
  last_flush_ns_ = monotonic_ns();
  flush_cost_ns_ = last_flush_ns_ - begin;
  return first;
}

// Layers of one name are told apart by their id.
std::vector<std::string> Sidecar::unique_layer_names() const {
  std::unordered_map<std::string_view, int> uses;
  for (const auto& layer : layers_) uses[layer.name] += 1;
  std::vector<std::string> names;
  names.reserve(layers_.size());
  for (const auto& layer : layers_)
    names.push_back(uses[layer.name] > 1 ? layer.name + " [" + layer.id + "]" : layer.name);
  return names;
}

std::string Sidecar::span_args(const SpanRecord& span) const {
  std::string args;
  JsonObject json(args);
  json.integer("call", static_cast<std::int64_t>(span.call));
  if (span.layer >= 0) {
    const auto& layer = layers_[static_cast<std::size_t>(span.layer)];
    json.text("layer", layer.id).text("op", layer.op);
  }
  json.text("timing", kTimingNames[static_cast<std::size_t>(span.timing)])
      .text("domain", span.on_device ? "gpu" : "host");
  // The array form of a package's files has no place for what is true of all events.
  if (kind_ == SidecarKind::package) json.text("engine_id", engine_id_).text("engine_runtime", runtime_);
  json.close();
  return args;
}

std::string Sidecar::summary() const {
  const auto info = engine_->info();
  const auto anchor = wall_anchor();
  std::string out;
  JsonObject json(out);
  json.integer("schema", 1)
      .text("engine_id", info.engine_id)
      .text("engine_name", info.identity.name)
      .text("engine_runtime", info.identity.runtime)
      .text("method", info.identity.method)
      .integer("instance", info.instance)
      .text("level", level_name(info.level))
      .integer("calls", info.calls)
      .integer("dropped_spans", dropped_)
      .text("clock", "CLOCK_MONOTONIC")
      .integer("anchor_monotonic_ns", anchor.monotonic_ns)
      .integer("anchor_unix_ns", anchor.unix_ns);
  if (rank() >= 0) json.integer("rank", rank());
  json.close();
  return out;
}

std::string Sidecar::perfetto() const {
  const auto info = engine_->info();
  constexpr std::int64_t kHostRow = 1;
  constexpr std::int64_t kLayerRow = 2;
  constexpr std::int64_t kDeviceRow = 3;
  TraceJson trace(TraceJson::Form::object);
  if (!spans_.empty()) {
    const std::string process =
        info.identity.name + " (" + info.identity.runtime + " engine " + info.engine_id + ")";
    trace.track(1, process, kHostRow, "host: calls and phases");
    trace.track(1, process, kLayerRow, "host: layers");
    if (std::any_of(spans_.begin(), spans_.end(), [](const auto& span) { return span.on_device; })) {
      trace.track(1, process, kDeviceRow, "GPU");
    }
  }
  for (const auto& span : spans_) {
    const bool layer = span.layer >= 0;
    const auto row = span.on_device ? kDeviceRow : layer ? kLayerRow : kHostRow;
    trace.slice(
        layer ? std::string_view(layers_[static_cast<std::size_t>(span.layer)].name) : name_text(span.name),
        layer                          ? "layer"
        : span.kind == SpanKind::phase ? "phase"
                                       : "delegate",
        1, row, span.start_ns, span.end_ns - span.start_ns, span_args(span));
  }
  return trace.finish(summary());
}

std::string Sidecar::trex() const {
  const auto names = unique_layer_names();
  std::vector<LayerTotal> rows;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerTotal row;
    row.name = names[i];
    row.total_ns = layers_[i].total_ns;
    if (!layers_[i].samples.empty()) row.median_ns = median(layers_[i].samples);
    rows.push_back(std::move(row));
  }
  return trex_profile(calls_, rows, engine_->info().identity.runtime);
}

std::string Sidecar::package_layers() const {
  const auto info = engine_->info();
  const auto names = unique_layer_names();
  TraceJson trace(TraceJson::Form::array);
  for (const auto& span : spans_) {
    if (span.layer < 0) continue;
    trace.named_slice(names[static_cast<std::size_t>(span.layer)], info.identity.name + " Engine Execution",
                      1, span.start_ns, span.end_ns - span.start_ns, span_args(span));
  }
  return trace.finish({});
}

std::string Sidecar::package_phases(std::span<const NameId> phases) const {
  TraceJson trace(TraceJson::Form::array);
  for (const auto& span : spans_) {
    if (span.kind != SpanKind::phase || std::find(phases.begin(), phases.end(), span.name) == phases.end())
      continue;
    trace.named_slice(name_text(span.name), span.on_device ? "GPU" : "CPU Functions", 1, span.start_ns,
                      span.end_ns - span.start_ns, span_args(span));
  }
  return trace.finish({});
}

void flush_sidecars() {
  std::vector<std::shared_ptr<Sidecar>> sidecars;
  {
    const std::lock_guard lock(living_sidecars().mutex);
    for (const auto& weak : living_sidecars().sidecars) {
      if (auto strong = weak.lock()) sidecars.push_back(std::move(strong));
    }
  }
  std::exception_ptr first;
  for (const auto& sidecar : sidecars) {
    try {
      sidecar->flush();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace torchtrt_viz
