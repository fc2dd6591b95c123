#include "core/instrumented_engine.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/atomic_file.hpp"
#include "core/clock.hpp"

namespace torchtrt_viz {
namespace {

NameId phase_id(Phase phase) {
  static const auto ids = [] {
    std::array<NameId, kPhaseNames.size()> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = intern_name(kPhaseNames[i]);
    return out;
  }();
  return ids[static_cast<std::size_t>(phase)];
}

Record record_at(Level level) noexcept {
  return level >= Level::layers   ? Record::layers
         : level >= Level::phases ? Record::device_time
                                  : Record::nothing;
}

// Engines that can be called. Its lock is taken before an engine's, and never while one is held.
struct LivingEngines {
  std::mutex mutex;
  std::vector<InstrumentedEngine*> engines;
};

LivingEngines& living_engines() {
  static LivingEngines* const instance = new LivingEngines;  // NOLINT: engines may outlive statics
  return *instance;
}

}  // namespace

InstrumentedEngine::InstrumentedEngine(std::unique_ptr<Engine> engine, EngineIdentity identity,
                                       Options options)
    : options_(std::move(options)), entry_(register_engine(std::move(identity))), engine_(std::move(engine)) {
  info_ = entry_->info();
}

std::unique_ptr<InstrumentedEngine> InstrumentedEngine::create(std::unique_ptr<Engine> engine,
                                                               EngineIdentity identity, Options options) {
  std::unique_ptr<InstrumentedEngine> made(
      new InstrumentedEngine(std::move(engine), std::move(identity), std::move(options)));
  {
    const std::lock_guard lock(made->mutex_);
    try {
      made->apply(true);
      made->engine_->prepare();
    } catch (const Error& failure) {
      made->entry_->update([&](EngineInfo& info) { info.last_error = failure.what(); });
      throw;
    }
    made->entry_->update([&](EngineInfo& info) {
      info.contexts = made->engine_->contexts();
      info.attachments = made->engine_->attachments();
    });
  }
  const std::lock_guard lock(living_engines().mutex);
  living_engines().engines.push_back(made.get());
  return made;
}

void InstrumentedEngine::apply_everywhere() {
  const std::lock_guard lock(living_engines().mutex);
  for (auto* engine : living_engines().engines) {
    const std::lock_guard one(engine->mutex_);
    if (config_generation() != engine->applied_generation_) engine->apply(false);
  }
}

InstrumentedEngine::~InstrumentedEngine() {
  {
    const std::lock_guard lock(living_engines().mutex);
    std::erase(living_engines().engines, this);
  }
  const std::lock_guard lock(mutex_);
  if (level_.load(std::memory_order_relaxed) >= Level::phases) {
    // What an asynchronous engine measured of its last call is known only now.
    regardless([this] {
      engine_->finish();
      spans_.clear();
      engine_->collect(spans_);
      if (!spans_.empty()) publish(spans_.back().call, nullptr, nullptr);
    });
  }
  engine_.reset();
  regardless([this] {
    if (sidecar_) sidecar_->stop();
  });
  entry_->update([](EngineInfo& info) { info.alive = false; });
}

// Under the mutex, when the process-wide configuration is another than the one applied last. Once the engine
// is loaded, what fails is on record and the engine works on without it: the next call tries no more than
// this one.
void InstrumentedEngine::apply(bool loading) {
  const auto process = config_snapshot();
  applied_generation_ = process.generation;
  auto settings = resolve(options_.load, process, options_.specs);
  settings.level = std::min(settings.level, engine_->deepest());
  info_.level = settings.level;
  info_.level_source = settings.source;
  info_.format = settings.format;
  info_.path_prefix = settings.path_prefix;
  std::optional<Error> trouble;
  bool files = settings.level != Level::off && settings.format != Format::etdump;
  if (files) {
    try {
      check_directory(settings.path_prefix);
    } catch (const Error& failure) {
      if (loading) throw;
      trouble = failure;
      files = false;
    }
  }
  if (files) {
    if (!sidecar_) sidecar_ = Sidecar::make(entry_, options_.sidecars);
    sidecar_->configure(settings.format, settings.path_prefix);
  } else if (sidecar_) {
    sidecar_->stop();
  }
  try {
    engine_->want(record_at(settings.level));
  } catch (const Error& failure) {
    if (loading) throw;
    trouble = failure;
    info_.level = std::min(settings.level, Level::phases);
  }
  level_.store(info_.level, std::memory_order_relaxed);
  off_generation_ = info_.level == Level::off ? applied_generation_ : UINT64_MAX;
  entry_->update([&](EngineInfo& info) {
    info.level = info_.level;
    info.level_source = info_.level_source;
    info.format = info_.format;
    info.path_prefix = info_.path_prefix;
    info.contexts = engine_->contexts();
    info.attachments = engine_->attachments();
    if (trouble) info.last_error = trouble->what();
  });
}

void InstrumentedEngine::call(std::span<const TensorView> inputs, std::span<OutputView> outputs, void* stream,
                              ReportSink* sink, std::int64_t entered_ns) {
  const std::lock_guard lock(mutex_);
  const auto generation = config_generation();
  if (generation == off_generation_) [[likely]] {
    run(entry_->count_call(), inputs, outputs, stream);
    return;
  }
  if (generation != applied_generation_) apply(false);
  call_watched(entry_->count_call(), inputs, outputs, stream, sink, entered_ns);
}

// Measured if the level asks for it and somebody reads it.
void InstrumentedEngine::call_watched(std::uint64_t call, std::span<const TensorView> inputs,
                                      std::span<OutputView> outputs, void* stream, ReportSink* sink,
                                      std::int64_t entered_ns) {
  auto level = level_.load(std::memory_order_relaxed);
  const bool files = sidecar_ && sidecar_->active();
  if (!files && !recording()) level = sink == nullptr ? Level::off : std::min(level, sink->limit());
  if (level == Level::off) {
    run(call, inputs, outputs, stream);
    return;
  }
  try {
    run_measured(call, level, inputs, outputs, stream, entered_ns);
  } catch (...) {
    const auto failure = current_failure();
    publish(call, &failure, sink);
    note_failure(failure);
    throw;
  }
  publish(call, nullptr, sink);
}

void InstrumentedEngine::note_failure(const Error& failure) {
  entry_->update([&](EngineInfo& info) {
    info.failed_calls += 1;
    info.last_error = failure.what();
  });
}

void InstrumentedEngine::run(std::uint64_t call, std::span<const TensorView> inputs,
                             std::span<OutputView> outputs, void* stream) {
  try {
    engine_->bind_inputs(inputs);
    engine_->infer_shapes();
    engine_->bind_outputs(outputs);
    engine_->enqueue(call, stream, Record::nothing);
    engine_->stage_outputs(outputs);
    engine_->synchronize();
  } catch (...) {
    note_failure(current_failure());
    throw;
  }
}

void InstrumentedEngine::run_measured(std::uint64_t call, Level level, std::span<const TensorView> inputs,
                                      std::span<OutputView> outputs, void* stream, std::int64_t entered_ns) {
  spans_.clear();
  const auto begin = entered_ns != 0 ? entered_ns : monotonic_ns();
  const auto add = [&](Phase phase, SpanKind kind, std::int64_t start, std::int64_t end) {
    SpanRecord span;
    span.start_ns = start;
    span.end_ns = end;
    span.call = call;
    span.name = phase_id(phase);
    span.kind = kind;
    spans_.push_back(span);
  };
  // What fails has its span all the same: it ends where it failed.
  const auto timed = [](auto&& work, auto&& close) {
    try {
      work();
    } catch (...) {
      close();
      throw;
    }
    close();
  };
  const auto step = [&](Phase phase, auto&& work) {
    if (level < Level::phases) return work();
    const auto start = monotonic_ns();
    timed(work, [&] {
      const auto end = monotonic_ns();
      if (phase == Phase::enqueue_host) engine_->collect(spans_);
      add(phase, SpanKind::phase, start, end);
    });
  };
  timed(
      [&] {
        step(Phase::input_binding, [&] { engine_->bind_inputs(inputs); });
        step(Phase::shape_inference, [&] { engine_->infer_shapes(); });
        step(Phase::output_binding, [&] { engine_->bind_outputs(outputs); });
        step(Phase::enqueue_host, [&] { engine_->enqueue(call, stream, record_at(level)); });
        step(Phase::output_staging, [&] { engine_->stage_outputs(outputs); });
        step(Phase::synchronize, [&] { engine_->synchronize(); });
      },
      [&] {
        if (level >= Level::phases) engine_->collect(spans_);
        add(Phase::delegate, SpanKind::delegate, begin, monotonic_ns());
      });
}

void InstrumentedEngine::publish(std::uint64_t call, const Error* failure, ReportSink* sink) {
  const auto& layers = engine_->layers();
  if (layers.rows().size() != layers_published_) {
    entry_->update([&](EngineInfo& info) {
      for (const auto& row : std::span(layers.rows()).subspan(layers_published_))
        info.layers.push_back(row.id);
    });
    layers_published_ = layers.rows().size();
    if (sidecar_) sidecar_->set_layer_information(engine_->layer_information());
  }
  if (sink != nullptr) sink->report({info_, layers, spans_, call, failure});
  if (recording()) record_spans(entry_, layers, spans_);
  if (sidecar_ && sidecar_->active()) {
    sidecar_->add(spans_, layers);
    sidecar_->maybe_flush();
  }
}

}  // namespace torchtrt_viz
