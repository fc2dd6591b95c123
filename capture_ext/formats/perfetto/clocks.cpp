#include "formats/perfetto/clocks.hpp"

#include <algorithm>
#include <deque>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

constexpr std::uint32_t kMostHops = 8;

bool scaled(std::uint64_t value, std::uint64_t multiplier, std::int64_t& ns) {
  std::int64_t signed_multiplier = 0;
  return !__builtin_add_overflow(multiplier == 0 ? 1 : multiplier, 0, &signed_multiplier) &&
         !__builtin_mul_overflow(value, signed_multiplier, &ns);
}

struct RawReading {
  std::uint32_t clock = 0;
  std::uint64_t value = 0;
  std::uint64_t multiplier = 1;
  bool incremental = false;
};

RawReading read_reading(Bytes message) {
  RawReading reading;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case snapshot_field::kClockId:
        reading.clock = static_cast<std::uint32_t>(fields.value());
        break;
      case snapshot_field::kTimestamp:
        reading.value = fields.value();
        break;
      case snapshot_field::kIncremental:
        reading.incremental = fields.value() != 0;
        break;
      case snapshot_field::kMultiplier:
        reading.multiplier = fields.value();
        break;
      default:
        break;
    }
  }
  return reading;
}

}  // namespace

Clocks::Key Clocks::key(std::uint32_t sequence, std::uint32_t clock) {
  const bool scoped = clock >= clock_id::kFirstScoped && clock <= clock_id::kLastScoped;
  return scoped ? (static_cast<Key>(sequence) << 32) | clock : clock;
}

std::vector<Clocks::Reading> Clocks::readings(Bytes snapshot) const {
  std::vector<Reading> out;
  Fields fields(snapshot);
  while (fields.next() && out.size() < kMostClocks) {
    if (fields.number() != snapshot_field::kClocks) continue;
    const RawReading raw = read_reading(fields.bytes());
    Reading reading{raw.clock, 0, raw.incremental};
    if (raw.clock != 0 && scaled(raw.value, raw.multiplier, reading.ns)) out.push_back(reading);
  }
  return out;
}

void Clocks::add(std::uint32_t sequence, Bytes snapshot) {
  const auto index = static_cast<std::uint32_t>(snapshots_.size());
  std::vector<Key> members;
  Fields fields(snapshot);
  while (fields.next()) {
    if (fields.number() == snapshot_field::kPrimary && primary_ == 0) {
      primary_ = static_cast<std::uint32_t>(fields.value());
    }
    if (fields.number() != snapshot_field::kClocks || members.size() >= kMostClocks) continue;
    const RawReading raw = read_reading(fields.bytes());
    std::int64_t ns = 0;
    if (raw.clock == 0 || !scaled(raw.value, raw.multiplier, ns)) continue;
    const Key own = key(sequence, raw.clock);
    Clock& clock = clocks_[own];
    if (!clock.entries.empty() && clock.entries.back().snapshot == index) continue;
    if (clock.entries.empty()) {
      clock.multiplier = raw.multiplier == 0 ? 1 : raw.multiplier;
      clock.incremental = raw.incremental;
    }
    clock.entries.push_back({index, ns});
    members.push_back(own);
  }
  snapshots_.push_back(std::move(members));
}

void Clocks::choose_target() {
  target_ = primary_ != 0 ? primary_ : clock_id::kBoottime;
  find_paths();
}

// One search from the target over all snapshots gives every clock its way there.
void Clocks::find_paths() {
  if (!clocks_.contains(target_)) return;
  std::deque<Key> queue{target_};
  std::vector<bool> visited(snapshots_.size(), false);
  while (!queue.empty()) {
    const Key at = queue.front();
    queue.pop_front();
    const std::uint32_t hops = clocks_.at(at).hops;
    if (hops >= kMostHops) continue;
    for (const Entry& entry : clocks_.at(at).entries) {
      if (visited[entry.snapshot]) continue;
      visited[entry.snapshot] = true;
      for (const Key other : snapshots_[entry.snapshot]) {
        Clock& clock = clocks_.at(other);
        if (other == target_ || clock.hops != 0) continue;
        clock.next = at;
        clock.hops = hops + 1;
        queue.push_back(other);
      }
    }
  }
}

void Clocks::pair_up(Clock& clock) {
  const std::vector<Entry>& next = clocks_.at(clock.next).entries;
  for (const Entry& entry : clock.entries) {
    const auto same = std::lower_bound(next.begin(), next.end(), entry.snapshot,
                                       [](const Entry& e, std::uint32_t s) { return e.snapshot < s; });
    if (same != next.end() && same->snapshot == entry.snapshot) clock.pairs.emplace_back(entry.ns, same->ns);
  }
  std::stable_sort(clock.pairs.begin(), clock.pairs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
}

std::int64_t Clocks::shift(const Clock& clock, std::int64_t ns, bool& overflow) {
  auto after = std::upper_bound(clock.pairs.begin(), clock.pairs.end(), ns,
                                [](std::int64_t value, const auto& pair) { return value < pair.first; });
  if (after != clock.pairs.begin()) --after;
  std::int64_t delta = 0;
  std::int64_t out = 0;
  overflow |= __builtin_sub_overflow(ns, after->first, &delta);
  overflow |= __builtin_add_overflow(after->second, delta, &out);
  return out;
}

bool Clocks::incremental(std::uint32_t sequence, std::uint32_t clock) const {
  const auto found = clocks_.find(key(sequence, clock));
  return found != clocks_.end() && found->second.incremental;
}

std::optional<std::int64_t> Clocks::nanoseconds(std::uint32_t sequence, std::uint32_t clock,
                                                std::uint64_t value) const {
  const auto found = clocks_.find(key(sequence, clock));
  std::int64_t ns = 0;
  if (!scaled(value, found == clocks_.end() ? 1 : found->second.multiplier, ns)) return std::nullopt;
  return ns;
}

std::optional<std::int64_t> Clocks::convert(std::uint32_t sequence, std::uint32_t clock, std::int64_t ns) {
  Key at = key(sequence, clock);
  bool overflow = false;
  while (at != target_) {
    const auto found = clocks_.find(at);
    if (found == clocks_.end() || found->second.hops == 0) return std::nullopt;
    if (found->second.pairs.empty()) pair_up(found->second);
    ns = shift(found->second, ns, overflow);
    at = found->second.next;
  }
  if (overflow) return std::nullopt;
  return ns;
}

std::optional<std::int64_t> Clocks::unix_offset() {
  if (target_ == clock_id::kRealtime) return 0;
  const auto found = clocks_.find(clock_id::kRealtime);
  if (found == clocks_.end() || found->second.entries.empty()) return std::nullopt;
  const std::int64_t unix_ns = found->second.entries.front().ns;
  const std::optional<std::int64_t> own = convert(0, clock_id::kRealtime, unix_ns);
  std::int64_t offset = 0;
  if (!own || __builtin_sub_overflow(unix_ns, *own, &offset)) return std::nullopt;
  return offset;
}

}  // namespace torchtrt_viz::perfetto
