#include "host_engine/layer_tracer.hpp"

#include <executorch/runtime/platform/clock.h>

#include <algorithm>
#include <cstdio>

#include "core/clock.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

constexpr std::string_view kKernelPrefix = "native_call_";

}  // namespace

void LayerTracer::open(std::uint64_t call, SpanReports* out) {
  call_ = call;
  out_ = out;
  frames_.clear();
  parts_.clear();
  next_known_ = 0;
}

void LayerTracer::close() { out_ = nullptr; }

LayerTracer::Entry LayerTracer::start_profiling(const char* name, ChainID, DebugHandle) {
  Entry entry{};
  entry.event_id = -1;
  if (out_ == nullptr || name == nullptr) return entry;
  const std::string_view text(name);
  Frame frame;
  if (text.starts_with(kKernelPrefix)) {
    frame.kind = Kind::kernel;
  } else if (text == "DELEGATE_CALL") {
    frame.kind = Kind::delegate;
    parts_.clear();
    kernels_.clear();
    whole_ = whole_call();
  } else if (text == "OPERATOR_CALL") {
    frame.kind = Kind::operation;
  }
  frame.name = name;
  frame.spans_before = out_->size();
  entry.event_id = static_cast<std::int64_t>(frames_.size());
  if (frame.kind != Kind::other) frame.start_ns = monotonic_ns();
  frames_.push_back(frame);
  return entry;
}

void LayerTracer::end_profiling(Entry entry) {
  if (out_ == nullptr || entry.event_id < 0) return;
  const auto at = static_cast<std::size_t>(entry.event_id);
  if (at >= frames_.size()) return;
  const Frame frame = frames_[at];
  // The clock is read only where it ends a layer: that is most of what a record costs.
  const bool bare = frame.kind == Kind::operation && out_->size() == frame.spans_before;
  const auto end_ns = bare || frame.kind == Kind::kernel || frame.kind == Kind::delegate ? monotonic_ns() : 0;
  frames_.resize(at);  // what was not ended inside it, ends with it
  if (frame.kind == Kind::kernel) {
    const auto op = std::string_view(frame.name).substr(kKernelPrefix.size());
    push(layer_of(frame.name, op, op), frame.start_ns, end_ns, Timing::measured);
  } else if (frame.kind == Kind::delegate) {
    end_delegate(frame, end_ns);
  } else if (bare) {
    // A kernel that reports nothing of its own: the call of it is the leaf.
    push(layer_of(frame.name, "op", "unknown"), frame.start_ns, end_ns, Timing::measured);
  }
}

LayerTracer::Entry LayerTracer::start_profiling_delegate(const char* name, DelegateId) {
  Entry entry{};
  entry.event_id = -1;
  if (out_ == nullptr) return entry;
  entry.event_id = static_cast<std::int64_t>(frames_.size());
  Frame frame;
  frame.name = name == nullptr ? "" : name;
  frame.start_ns = monotonic_ns();
  frames_.push_back(frame);
  return entry;
}

void LayerTracer::end_profiling_delegate(Entry entry, const void*, std::size_t) {
  if (out_ == nullptr || entry.event_id < 0 || static_cast<std::size_t>(entry.event_id) >= frames_.size())
    return;
  const auto end_ns = monotonic_ns();
  const Frame frame = frames_[static_cast<std::size_t>(entry.event_id)];
  frames_.resize(static_cast<std::size_t>(entry.event_id));
  add_part(frame.name, end_ns - frame.start_ns);
}

void LayerTracer::log_profiling_delegate(const char* name, DelegateId, et_timestamp_t start,
                                         et_timestamp_t end, const void*, std::size_t) {
  if (out_ == nullptr) return;
  add_part(name == nullptr ? "operator" : name,
           end > start ? static_cast<std::int64_t>(rt::ticks_to_ns(end - start)) : 0);
}

void LayerTracer::add_part(const char* name, std::int64_t dur_ns) {
  if (whole_) {
    const bool named = next_known_ < known_.size() && known_[next_known_].place == place();
    if (!named) kernels_.append(kernels_.empty() ? "" : " + ").append(name);
    parts_.push_back({-1, dur_ns});
    return;
  }
  char suffix[16];
  std::snprintf(suffix, sizeof suffix, "%03zu", parts_.size());
  parts_.push_back({layer_of(name, suffix, name), dur_ns});
}

// Lays the reported operators end to end from the start of the call, and gives what is left its own layer.
void LayerTracer::end_delegate(const Frame& frame, std::int64_t end_ns) {
  if (whole_) {
    push(layer_of("DELEGATE_CALL", "delegate", kernels_), frame.start_ns, end_ns, Timing::measured);
    parts_.clear();
    return;
  }
  const auto wall = end_ns - frame.start_ns;
  std::int64_t sum = 0;
  for (const auto& part : parts_) sum += part.dur_ns;
  const bool too_long = sum > wall;
  auto at = frame.start_ns;
  std::int64_t reported = 0;
  for (const auto& part : parts_) {
    reported += part.dur_ns;
    // Of the running sum, so that rounding never adds up to more than the call.
    const auto until = frame.start_ns + (too_long ? static_cast<std::int64_t>(static_cast<double>(reported) /
                                                                              static_cast<double>(sum) *
                                                                              static_cast<double>(wall))
                                                  : reported);
    const auto end = std::min(until, end_ns);
    push(part.layer, at, end, too_long ? Timing::scaled : Timing::laid_out);
    at = end;
  }
  const bool split = !parts_.empty();
  push(layer_of("DELEGATE_CALL", split ? "rest" : "delegate", "delegate"), at, end_ns,
       split ? Timing::rest : Timing::measured);
  parts_.clear();
}

void LayerTracer::push(std::int32_t layer, std::int64_t start_ns, std::int64_t end_ns, Timing timing) {
  SpanRecord span;
  span.start_ns = start_ns;
  span.end_ns = end_ns;
  span.call = call_;
  span.name = layers_[layer].name_id;
  span.layer = layer;
  span.kind = SpanKind::layer;
  span.timing = timing;
  out_->push_back(span);
}

bool LayerTracer::whole_call() {
  const auto [at, fresh] = whole_calls_.try_emplace(place(), false);
  if (fresh) at->second = layers_.is_whole(place_id() + "_delegate");
  return at->second;
}

std::int64_t LayerTracer::place() const noexcept {
  return static_cast<std::int64_t>(chain_id_) << 32 | static_cast<std::int64_t>(debug_handle_);
}

std::string LayerTracer::place_id() const {
  char text[48];
  if (chain_id_ > 0) {
    std::snprintf(text, sizeof text, "layer_c%d_%04u", chain_id_, debug_handle_);
  } else {
    std::snprintf(text, sizeof text, "layer_%04u", debug_handle_);
  }
  return text;
}

// `event` is the event's own name; the layer's id is its place and `suffix`.
std::int32_t LayerTracer::layer_of(std::string_view event, std::string_view suffix, std::string_view op) {
  const auto here = place();
  if (next_known_ < known_.size()) {
    const auto& known = known_[next_known_];
    if (known.place == here && known.name == event) {
      ++next_known_;
      return known.layer;
    }
    known_.resize(next_known_);  // another path through the program: learn it from here on
  }
  const auto id = place_id() + "_" + std::string(suffix);
  std::string name(op);
  if (event == "DELEGATE_CALL") {
    name = "delegate call at instruction " + std::to_string(debug_handle_);
    if (suffix == "rest") name += ", outside its operators";
  }
  const auto layer = layers_.row(id, name, op);
  known_.push_back({here, std::string(event), layer});
  ++next_known_;
  return layer;
}

}  // namespace torchtrt_viz::et
