#include "formats/kineto/steps.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <unordered_map>

#include "formats/kineto/key_index.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr std::int32_t kNone = -1;

struct Step {
  std::int64_t start;
  std::int64_t end;
  std::int32_t number;
};

using Steps = std::vector<Step>;

// The number behind the "#" of a name, -1 when there is none.
std::int32_t number_of(std::string_view name) {
  const std::size_t hash = name.rfind('#');
  if (hash == std::string_view::npos) return kNone;
  std::int32_t number = kNone;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + hash + 1, end, number);
  return error == std::errc{} && stop == end && number >= 0 ? number : kNone;
}

// The step around a moment; steps of one thread follow one another.
const Step* step_at(const Steps& steps, std::int64_t time) {
  auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                [](std::int64_t t, const Step& step) { return t < step.start; });
  if (after == steps.begin()) return nullptr;
  --after;
  return time < after->end || time == after->start ? &*after : nullptr;
}

// Values by id: an array where ids are dense, as profilers number them, else a table.
class ById {
 public:
  void add(std::int64_t id, std::int32_t value) {
    if (id < 0) return;
    if (id < kDense) {
      const auto i = static_cast<std::size_t>(id);
      if (i >= dense_.size()) dense_.resize(std::max(i + 1, dense_.size() * 2), kNone);
      dense_[i] = value;
    } else {
      sparse_[id] = value;
    }
  }
  [[nodiscard]] std::int32_t find(std::int64_t id) const {
    if (id < 0) return kNone;
    if (id < kDense)
      return static_cast<std::size_t>(id) < dense_.size() ? dense_[static_cast<std::size_t>(id)] : kNone;
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  static constexpr std::int64_t kDense = 1 << 22;
  std::vector<std::int32_t> dense_;
  std::unordered_map<std::int64_t, std::int32_t> sparse_;
};

}  // namespace

Column<std::int32_t> number_steps(const Spans& spans, const std::vector<Lane>& lanes,
                                  std::span<const std::uint32_t> rank_of_lane, const Interner& names,
                                  std::uint8_t step_kind) {
  Column<std::int32_t> out;
  out.assign(spans.size(), kNone);
  std::unordered_map<std::int32_t, Steps> by_lane;
  for (std::size_t row = 0; row < spans.size(); ++row) {
    if (spans.kind[row] != step_kind || spans.domain[row] != 0 || spans.name[row] == Interner::kNone)
      continue;
    const std::int32_t number = number_of(names.text(spans.name[row]));
    if (number == kNone) continue;
    by_lane[spans.lane[row]].push_back({spans.start[row], spans.start[row] + spans.dur[row], number});
  }
  if (by_lane.empty()) return out;

  // Each lane's steps: its own, or those of the only stepping thread of its process.
  std::unordered_map<std::uint32_t, const Steps*> by_process;
  for (auto& [lane, steps] : by_lane) {
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.start < b.start; });
    auto& of_process =
        by_process.try_emplace(lanes[static_cast<std::size_t>(lane)].process, &steps).first->second;
    if (of_process != &steps) of_process = nullptr;
  }
  std::vector<const Steps*> own(lanes.size(), nullptr);
  std::vector<const Steps*> around(lanes.size(), nullptr);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].type != LaneType::thread) continue;
    const auto mine = by_lane.find(static_cast<std::int32_t>(lane));
    const auto near = by_process.find(lanes[lane].process);
    if (mine != by_lane.end()) {
      own[lane] = &mine->second;
    } else if (near != by_process.end()) {
      around[lane] = near->second;
    }
  }

  ById by_correlation;
  ById by_external_id;
  // Ranks that were merged into one file number their launches each from 1.
  const auto scoped = [&](std::size_t row, std::int64_t id) {
    const std::uint32_t rank = rank_of_lane[static_cast<std::size_t>(spans.lane[row])];
    return id < 0 || rank == 0 ? id : (id & ((std::int64_t{1} << 40) - 1)) | (std::int64_t{rank} << 40);
  };
  for (std::size_t row = 0; row < spans.size(); ++row) {
    if (spans.domain[row] != 0) continue;
    const auto lane = static_cast<std::size_t>(spans.lane[row]);
    const std::int64_t start = spans.start[row];
    if (own[lane] != nullptr) {
      if (const Step* step = step_at(*own[lane], start)) out[row] = step->number;
    } else if (around[lane] != nullptr) {
      const Step* const step = step_at(*around[lane], start);
      if (step != nullptr && start + spans.dur[row] <= step->end) out[row] = step->number;
    }
    if (out[row] == kNone) continue;
    by_correlation.add(scoped(row, spans.correlation[row]), out[row]);
    by_external_id.add(scoped(row, spans.external_id[row]), out[row]);
  }
  for (std::size_t row = 0; row < spans.size(); ++row) {
    if (spans.domain[row] == 0) continue;
    out[row] = spans.correlation[row] >= 0 ? by_correlation.find(scoped(row, spans.correlation[row]))
                                           : by_external_id.find(scoped(row, spans.external_id[row]));
  }
  return out;
}

}  // namespace torchtrt_viz::kineto
