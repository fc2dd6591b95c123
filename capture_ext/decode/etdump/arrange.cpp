#include "decode/etdump/arrange.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "decode/etdump/decode.hpp"
#include "decode/etdump/dictionary.hpp"

namespace torchtrt_viz::etdump {
namespace {

using Row = std::int64_t;
constexpr Row kNobody = -1;
constexpr std::int64_t kMicrosecond = 1000;

std::size_t index(Row row) { return static_cast<std::size_t>(row); }

bool of_delegate(Role role) { return role >= Role::kDelegate; }

// How far out an event stands when it and another cover exactly the same time.
int rank(Role role) {
  switch (role) {
    case Role::kMethod:
    case Role::kLoad:
      return 0;
    case Role::kOperatorCall:
    case Role::kDelegateCall:
    case Role::kControl:
    case Role::kRuntime:
      return 1;
    case Role::kKernel:
    case Role::kDelegate:
      return 2;
    case Role::kPhase:
    case Role::kEnqueue:
      return 3;
    case Role::kLayer:
      return 4;
  }
  return 4;
}

// The layers that one delegate instance logged in all its calls.
struct Evidence {
  std::int64_t layers = 0;
  std::int64_t micros = 0;     // whose duration is a whole number of microseconds
  std::int64_t pairs = 0;      // neighbours in one call
  std::int64_t joined = 0;     // of those, how many begin exactly where the one before ended
  std::int64_t displaced = 0;  // that lie outside of what must enclose them

  bool unreal(bool fine_clock) const {
    return displaced > 0 || (fine_clock && layers > 0 && micros == layers && joined == pairs);
  }
};

class Arranger {
 public:
  explicit Arranger(const Timeline& timeline) : t_(timeline), rows_(timeline.run.size()) {
    out_.parent.assign(rows_, kNobody);
    out_.depth.assign(rows_, 0);
    out_.self_ns.assign(t_.duration.begin(), t_.duration.end());
    out_.call.assign(rows_, kNobody);
    out_.modeled.assign(rows_, 0);
  }

  Arrangement run() {
    group_instances();
    for_each_run([this](Row first, Row last) { find_calls(first, last); });
    fine_clock_ = has_fine_clock();
    for_each_run([this](Row first, Row last) { gather_evidence(first, last); });
    decide_modeled();
    for_each_run([this](Row first, Row last) {
      nest(first, last);
      adopt(first, last);
    });
    return std::move(out_);
  }

 private:
  Role role(Row row) const { return static_cast<Role>(t_.role[index(row)]); }
  std::int64_t start(Row row) const { return t_.start[index(row)]; }
  std::int64_t duration(Row row) const { return t_.duration[index(row)]; }

  // A time beyond the range of the clock can only come from a damaged file; saturate rather than wrap.
  static std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
  }

  std::int64_t end(Row row) const { return plus(start(row), duration(row)); }

  Placing placing(Row row) const {
    return t_.placing.empty() ? Placing::kDecide : static_cast<Placing>(t_.placing[index(row)]);
  }

  bool in_engine(Row row) const { return !t_.in_engine.empty() && t_.in_engine[index(row)] != 0; }

  bool same_instruction(Row a, Row b) const {
    return t_.instruction[index(a)] == t_.instruction[index(b)] && t_.chain[index(a)] == t_.chain[index(b)];
  }

  std::uint64_t instruction_key(Row row) const {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(t_.chain[index(row)])) << 32U |
           static_cast<std::uint32_t>(t_.instruction[index(row)]);
  }

  template <typename Visit>
  void for_each_run(Visit visit) {
    Row first = 0;
    const auto rows = static_cast<Row>(rows_);
    while (first < rows) {
      Row last = first + 1;
      while (last < rows && t_.run[index(last)] == t_.run[index(first)]) ++last;
      visit(first, last);
      first = last;
    }
  }

  // One instance is one delegate of one method: the same chain and instruction in runs of the same shape.
  void group_instances() {
    std::vector<std::int32_t> shape(rows_);
    for (std::size_t i = 0; i < rows_; ++i) shape[i] = t_.shape[static_cast<std::size_t>(t_.run[i])];
    const std::span<const std::int32_t> columns[] = {shape, t_.chain, t_.instruction};
    Groups groups = group_rows(columns);
    instance_ = std::move(groups.code);
    evidence_.assign(groups.first.size(), Evidence{});
  }

  // A call's event is written when it ends, behind everything that its delegate logged.
  void find_calls(Row first, Row last) {
    std::unordered_map<std::uint64_t, Row> calls;
    Row latest = kNobody;
    for (Row row = last - 1; row >= first; --row) {
      if (role(row) == Role::kDelegateCall) {
        calls[instruction_key(row)] = row;
        latest = row;
      } else if (of_delegate(role(row))) {
        if (latest == kNobody || !same_instruction(latest, row)) {
          const auto found = calls.find(instruction_key(row));
          latest = found == calls.end() ? kNobody : found->second;
        }
        out_.call[index(row)] = latest;
      }
    }
  }

  // Where the runtime itself counts in microseconds, whole microseconds say nothing about a delegate.
  bool has_fine_clock() const {
    for (Row row = 0; row < static_cast<Row>(rows_); ++row) {
      if (!of_delegate(role(row)) && (start(row) % kMicrosecond != 0 || duration(row) % kMicrosecond != 0)) {
        return true;
      }
    }
    return false;
  }

  // What a delegate logged in one call, in the file's order; without a DELEGATE_CALL (the runtime was told
  // to record methods only), what it logged in one run.
  struct Call {
    std::vector<Row> layers;
    std::vector<Row> phases;
    Row call = kNobody;
    Row delegate = kNobody;
    Row enqueue = kNobody;
  };

  template <typename Visit>
  void for_each_call(Row first, Row last, Visit visit) {
    members_.clear();
    for (Row row = first; row < last; ++row) {
      if (of_delegate(role(row)) && placing(row) != Placing::kElsewhere) members_.push_back(row);
    }
    const auto before = [this](Row a, Row b) {
      const Row call_a = out_.call[index(a)];
      const Row call_b = out_.call[index(b)];
      if (call_a != call_b) return call_a < call_b;
      return call_a == kNobody && instruction_key(a) < instruction_key(b);
    };
    if (!std::is_sorted(members_.begin(), members_.end(), before)) {
      std::stable_sort(members_.begin(), members_.end(), before);
    }
    for (std::size_t i = 0; i < members_.size();) {
      call_.layers.clear();
      call_.phases.clear();
      call_.call = out_.call[index(members_[i])];
      call_.delegate = call_.enqueue = kNobody;
      std::size_t j = i;
      bool whole = false;
      for (; j < members_.size() && !whole && !before(members_[i], members_[j]); ++j) {
        const Row row = members_[j];
        // Without a DELEGATE_CALL, the delegate's own event of its whole call is what ends the call.
        whole = role(row) == Role::kDelegate && call_.call == kNobody;
        switch (role(row)) {
          case Role::kDelegate:
            call_.delegate = row;
            break;
          case Role::kEnqueue:
            call_.enqueue = row;
            call_.phases.push_back(row);
            break;
          case Role::kPhase:
            call_.phases.push_back(row);
            break;
          default:
            call_.layers.push_back(row);
        }
      }
      visit(call_);
      i = j;
    }
  }

  bool inside(Row row, Row outer) const { return start(row) >= start(outer) && end(row) <= end(outer); }

  // Sorted by start, with the latest end so far: whether any phase encloses a time, by one search.
  void index_phases(Call& call) {
    std::sort(call.phases.begin(), call.phases.end(), [this](Row a, Row b) { return start(a) < start(b); });
    phase_reach_.clear();
    std::int64_t reach = std::numeric_limits<std::int64_t>::min();
    for (const Row row : call.phases) phase_reach_.push_back(reach = std::max(reach, end(row)));
  }

  bool in_a_phase(const Call& call, Row row) const {
    const auto behind = std::upper_bound(call.phases.begin(), call.phases.end(), start(row),
                                         [this](std::int64_t at, Row phase) { return at < start(phase); });
    if (behind == call.phases.begin()) return false;
    return phase_reach_[static_cast<std::size_t>(behind - call.phases.begin()) - 1] >= end(row);
  }

  Row method_of(Row first, Row last) const {
    for (Row row = last - 1; row >= first; --row) {
      if (role(row) == Role::kMethod) return row;
    }
    return kNobody;
  }

  void gather_evidence(Row first, Row last) {
    const Row method = method_of(first, last);
    for_each_call(first, last, [&](Call& call) {
      index_phases(call);
      const Row outer = call.call != kNobody ? call.call : method;
      Row previous = kNobody;
      for (const Row row : call.layers) {
        if (placing(row) != Placing::kDecide) continue;
        Evidence& e = evidence_[static_cast<std::size_t>(instance_[index(row)])];
        ++e.layers;
        e.micros += duration(row) % kMicrosecond == 0 ? 1 : 0;
        if (previous != kNobody) {
          ++e.pairs;
          e.joined += start(row) == end(previous) ? 1 : 0;
        }
        previous = row;
        const bool out_of_call = outer != kNobody && !inside(row, outer);
        // The host does one thing at a time: a layer that ran on it lies within one phase.
        const bool across_phases = !call.phases.empty() && !in_a_phase(call, row);
        e.displaced += out_of_call || across_phases ? 1 : 0;
      }
      // The delegate's own measurements of itself are only doubted when they contradict the runtime's.
      for (const Row row : call.phases) {
        if (outer != kNobody && !inside(row, outer)) out_.modeled[index(row)] = 1;
      }
      if (call.delegate != kNobody && outer != kNobody && !inside(call.delegate, outer)) {
        out_.modeled[index(call.delegate)] = 1;
      }
    });
  }

  void decide_modeled() {
    for (Row row = 0; row < static_cast<Row>(rows_); ++row) {
      if (role(row) != Role::kLayer) continue;
      const Placing said = placing(row);
      const bool unreal = said == Placing::kDecide
                              ? evidence_[static_cast<std::size_t>(instance_[index(row)])].unreal(fine_clock_)
                              : said == Placing::kModeled;
      out_.modeled[index(row)] = unreal ? 1 : 0;
    }
  }

  struct Open {
    Row row;
    std::int64_t end;
    std::int64_t covered_until;
  };

  // By time, for the events whose times are real: parent, depth and self time within one run.
  void nest(Row first, Row last) {
    order_.clear();
    for (Row row = first; row < last; ++row) {
      if (out_.modeled[index(row)] == 0 && placing(row) != Placing::kElsewhere) order_.push_back(row);
    }
    std::sort(order_.begin(), order_.end(), [this](Row a, Row b) {
      if (start(a) != start(b)) return start(a) < start(b);
      if (end(a) != end(b)) return end(a) > end(b);
      const int rank_a = rank(role(a));
      const int rank_b = rank(role(b));
      if (rank_a != rank_b) return rank_a < rank_b;
      return a > b;  // what is written later ended later, and so is the outer one
    });
    open_.clear();
    for (const Row row : order_) {
      const std::int64_t from = start(row);
      const std::int64_t to = end(row);
      bool cut = false;
      while (!open_.empty() && !encloses(open_.back(), row, from, to)) {
        cut |= open_.back().end > from;
        open_.pop_back();
      }
      out_.overlaps += cut ? 1 : 0;
      if (!open_.empty()) {
        Open& outer = open_.back();
        out_.parent[index(row)] = outer.row;
        out_.depth[index(row)] = out_.depth[index(outer.row)] + 1;
        const std::int64_t uncovered = std::max(from, outer.covered_until);
        if (to > uncovered) {
          out_.self_ns[index(outer.row)] -= to - uncovered;
          outer.covered_until = to;
        }
      }
      open_.push_back({row, to, from});
    }
  }

  // On a coarse clock an event can take no time at all, right where another ends: it lies inside when it is
  // a part of the same instruction, and follows otherwise.
  bool encloses(const Open& outer, Row row, std::int64_t from, std::int64_t to) const {
    if (outer.end < to) return false;
    if (outer.end > from) return true;
    const int outer_rank = rank(role(outer.row));
    return outer_rank < rank(role(row)) && (outer_rank == 0 || same_instruction(outer.row, row));
  }

  // By position, for the events whose times are not.
  void adopt(Row first, Row last) {
    const Row method = method_of(first, last);
    for_each_call(first, last, [&](Call& call) {
      const Row outer = call.call != kNobody ? call.call : method;
      if (call.delegate != kNobody && out_.modeled[index(call.delegate)] != 0) {
        hang(call.delegate, outer);
        cover(outer, duration(call.delegate));
      }
      const Row whole = call.delegate != kNobody ? call.delegate : outer;
      std::int64_t sum = 0;
      for (const Row row : call.phases) {
        if (out_.modeled[index(row)] == 0) continue;
        hang(row, whole);
        sum = plus(sum, duration(row));
      }
      cover(whole, sum);
      sum = 0;
      std::int64_t engine_sum = 0;
      for (const Row row : call.layers) {
        if (out_.modeled[index(row)] == 0) continue;
        const bool engine = in_engine(row) && call.enqueue != kNobody;
        hang(row, engine ? call.enqueue : whole);
        std::int64_t& total = engine ? engine_sum : sum;
        total = plus(total, duration(row));
      }
      cover(whole, sum);
      cover(call.enqueue, engine_sum);
    });
  }

  void hang(Row row, Row outer) {
    out_.parent[index(row)] = outer;
    out_.depth[index(row)] = outer == kNobody ? 0 : out_.depth[index(outer)] + 1;
  }

  // Children without a place cover as much of their parent as they take together; what other children
  // cover already is the same time (the layers of an engine run during its phases).
  void cover(Row outer, std::int64_t sum) {
    if (outer == kNobody || sum <= 0) return;
    std::int64_t& self = out_.self_ns[index(outer)];
    self = std::max<std::int64_t>(0, std::min(self, duration(outer) - sum));
  }

  const Timeline& t_;
  std::size_t rows_;
  Arrangement out_;
  std::vector<std::int32_t> instance_;
  std::vector<Evidence> evidence_;
  std::vector<Row> members_;
  std::vector<Row> order_;
  std::vector<Open> open_;
  std::vector<std::int64_t> phase_reach_;
  Call call_;
  bool fine_clock_ = false;
};

}  // namespace

Arrangement arrange(const Timeline& timeline) { return Arranger(timeline).run(); }

}  // namespace torchtrt_viz::etdump
