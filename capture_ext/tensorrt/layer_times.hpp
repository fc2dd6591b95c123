// Layer times of an execution context that lives in Python, as its IProfiler reports them: a name and
// milliseconds, layer after layer, execution after execution.
//
// The callback is on the path of every layer, so it keeps columns and nothing else. Executions repeat their
// layers: the name that followed last time is tried first, and a text is hashed only where the sequence is
// new. What belongs to which execution is found afterwards, from the marks and from the sequence.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torchtrt_viz {

struct LayerTimeColumns {
  std::vector<std::int32_t> name;         // row of `names`
  std::vector<std::int64_t> dur_ns;       // negative: what was reported is no time
  std::vector<std::int64_t> reported_ns;  // CLOCK_MONOTONIC, when the callback came
  std::vector<std::int64_t> marks;        // number of reports when an execution began
  std::vector<std::string> names;
};

class LayerTimes {
 public:
  void record(std::string_view name, float ms) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::lock_guard lock(mutex_);
    const auto id = number(name);
    columns_.name.push_back(id);
    columns_.dur_ns.push_back(nanoseconds(ms));
    columns_.reported_ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    last_ = id;
  }

  // An execution begins: what is reported from here on is its own.
  void mark() {
    const std::lock_guard lock(mutex_);
    columns_.marks.push_back(static_cast<std::int64_t>(columns_.name.size()));
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return columns_.name.size();
  }

  LayerTimeColumns snapshot() const {
    const std::lock_guard lock(mutex_);
    return columns_;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    columns_.name.clear();
    columns_.dur_ns.clear();
    columns_.reported_ns.clear();
    columns_.marks.clear();
    last_ = -1;
  }

 private:
  static std::int64_t nanoseconds(float ms) {
    const double ns = static_cast<double>(ms) * 1e6;
    if (!(ns >= 0.0) || ns > 9e18) return -1;  // also what is not a number
    return std::llround(ns);
  }

  // Under the mutex.
  std::int32_t number(std::string_view name) {
    if (last_ >= 0) {
      const auto guess = next_[static_cast<std::size_t>(last_)];
      if (guess >= 0 && columns_.names[static_cast<std::size_t>(guess)] == name) return guess;
    }
    const auto [found, fresh] = ids_.try_emplace(std::string(name), static_cast<std::int32_t>(next_.size()));
    if (fresh) {
      columns_.names.emplace_back(name);
      next_.push_back(-1);
    }
    if (last_ >= 0) next_[static_cast<std::size_t>(last_)] = found->second;
    return found->second;
  }

  mutable std::mutex mutex_;
  LayerTimeColumns columns_;
  std::vector<std::int32_t> next_;  // by name, the one that followed it last
  std::unordered_map<std::string, std::int32_t> ids_;
  std::int32_t last_ = -1;
};

}  // namespace torchtrt_viz
