#include "formats/etdump/arrange.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "formats/etdump/decode.hpp"
#include "formats/etdump/dictionary.hpp"

namespace torchtrt_viz::etdump {
namespace {

using Row = std::int64_t;
constexpr Row kNobody = -1;
constexpr std::int64_t kMicrosecond = 1000;
constexpr int kMostPhases = 64;

std::size_t index(Row row) { return static_cast<std::size_t>(row); }

bool of_delegate(Role role) { return role >= Role::kDelegate; }

bool is_instruction(Role role) {
  return role == Role::kOperatorCall || role == Role::kDelegateCall || role == Role::kControl;
}

// How far out an event stands when its times do not tell.
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
    out_.depth.assign(rows_, -1);
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
    mark_layers_of_calls();
    for_each_run([this](Row first, Row last) {
      nest(first, last);
      adopt(first, last);
      measure_depth(first, last);
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
      bool ended = false;
      for (; j < members_.size() && !ended && !before(members_[i], members_[j]); ++j) {
        const Row row = members_[j];
        // Without a DELEGATE_CALL, the delegate's own event of its whole call is what ends the call.
        ended = role(row) == Role::kDelegate && call_.call == kNobody;
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
        const bool out_of_call = outer != kNobody && !inside(row, outer);
        // What a delegate says of its times is believed until the runtime's own times contradict it.
        if (placing(row) == Placing::kMeasured && out_of_call) out_.modeled[index(row)] = 1;
        if (placing(row) != Placing::kDecide) continue;
        Evidence& e = evidence_[static_cast<std::size_t>(instance_[index(row)])];
        ++e.layers;
        e.micros += duration(row) % kMicrosecond == 0 ? 1 : 0;
        if (previous != kNobody) {
          ++e.pairs;
          e.joined += start(row) == end(previous) ? 1 : 0;
        }
        previous = row;
        // The host does one thing at a time: a layer that ran on it lies within one phase.
        const bool across_phases = !call.phases.empty() && !in_a_phase(call, row);
        e.displaced += out_of_call || across_phases ? 1 : 0;
      }
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
      if (unreal) out_.modeled[index(row)] = 1;
    }
  }

  // Layers outside of any call (a delegate that logs while it is loaded) nest like the runtime's own events.
  void mark_layers_of_calls() {
    in_call_.assign(rows_, 0);
    for_each_run([this](Row first, Row last) {
      for_each_call(first, last, [this](const Call& call) {
        if (call.call == kNobody && call.delegate == kNobody) return;
        for (const Row row : call.layers) in_call_[index(row)] = 1;
      });
    });
  }

  bool longer(Row a, Row b) const { return duration(a) > duration(b); }

  // Whether `row`, which ended no later, lies in `outer`. Strictly inside is inside. Where two events share a
  // start or an end - on a coarse clock an event may take no time at all - the instructions decide.
  bool lies_in(Row row, Row outer) const {
    if (start(row) < start(outer)) return false;
    if (start(row) > start(outer) && end(row) < end(outer)) return true;
    const Role inner_role = role(row);
    const Role outer_role = role(outer);
    if (rank(outer_role) == 0) return rank(inner_role) > 0 || longer(outer, row);
    if (rank(inner_role) == rank(outer_role)) {
      return longer(outer, row) && !(is_instruction(inner_role) && is_instruction(outer_role));
    }
    if (rank(inner_role) < rank(outer_role)) return false;
    return same_instruction(row, outer) || inner_role == Role::kRuntime || outer_role == Role::kRuntime;
  }

  // A layer follows another that ends where it begins, and does not lie in one that took the same time.
  bool layer_lies_in(Row row, Row outer) const {
    if (!inside(row, outer) || !longer(outer, row)) return false;
    return duration(row) > 0 || (start(row) > start(outer) && end(row) < end(outer));
  }

  // Rows in the order of their ends, which is the file's own for events that the runtime scopes.
  void order_by_end(std::vector<Row>& rows) const {
    const auto ends_first = [this](Row a, Row b) { return end(a) < end(b); };
    if (std::is_sorted(rows.begin(), rows.end(), ends_first)) return;
    std::sort(rows.begin(), rows.end(), [this](Row a, Row b) {
      if (end(a) != end(b)) return end(a) < end(b);
      if (start(a) != start(b)) return start(a) > start(b);
      const int rank_a = rank(role(a));
      const int rank_b = rank(role(b));
      return rank_a != rank_b ? rank_a > rank_b : a < b;
    });
  }

  // Builds trees out of rows in the order of their ends: each takes the ones before it that lie in it. What
  // nothing took is left in roots_.
  template <typename LiesIn>
  void grow(const std::vector<Row>& rows, LiesIn lies_in) {
    roots_.clear();
    for (const Row row : rows) {
      // From the latest end backwards: what later children cover reaches down to covered_from without a gap
      // that an earlier child could fill.
      std::int64_t covered_from = end(row);
      while (!roots_.empty() && lies_in(roots_.back(), row)) {
        const Row child = roots_.back();
        roots_.pop_back();
        out_.parent[index(child)] = row;
        const std::int64_t until = std::min(end(child), covered_from);
        if (until > start(child)) {
          out_.self_ns[index(row)] -= until - start(child);
          covered_from = start(child);
        }
      }
      if (!roots_.empty() && end(roots_.back()) > start(row)) ++out_.overlaps;
      roots_.push_back(row);
    }
  }

  // By time, for the events whose times are real.
  void nest(Row first, Row last) {
    scoped_.clear();
    for (Row row = first; row < last; ++row) {
      if (out_.modeled[index(row)] == 0 && placing(row) != Placing::kElsewhere && !in_call_[index(row)]) {
        scoped_.push_back(row);
      }
    }
    order_by_end(scoped_);
    grow(scoped_, [this](Row row, Row outer) { return lies_in(row, outer); });
    const Row method = method_of(first, last);
    for_each_call(first, last, [&](Call& call) {
      scoped_.clear();
      for (const Row row : call.layers) {
        if (out_.modeled[index(row)] == 0 && in_call_[index(row)]) scoped_.push_back(row);
      }
      if (scoped_.empty()) return;
      order_by_end(scoped_);
      const std::int64_t overlaps = out_.overlaps;
      grow(scoped_, [this](Row row, Row outer) { return layer_lies_in(row, outer); });
      out_.overlaps = overlaps;  // layers may run side by side
      hang_layers(call, method);
    });
  }

  // Layers that nothing else took belong to the phase that ran them, or to the call as a whole.
  void hang_layers(Call& call, Row method) {
    index_phases(call);
    std::sort(roots_.begin(), roots_.end(), [this](Row a, Row b) { return start(a) < start(b); });
    std::int64_t covered_until = std::numeric_limits<std::int64_t>::min();
    covers_.clear();
    for (const Row row : roots_) {
      const Row outer = phase_around(call, row, method);
      out_.parent[index(row)] = outer;
      if (covers_.empty() || covers_.back().first != outer) {
        covers_.emplace_back(outer, 0);
        covered_until = std::numeric_limits<std::int64_t>::min();
      }
      const std::int64_t from = std::max(start(row), covered_until);
      if (end(row) > from) {
        covers_.back().second += end(row) - from;
        covered_until = end(row);
      }
    }
    std::sort(covers_.begin(), covers_.end());
    for (std::size_t i = 0; i < covers_.size();) {
      std::int64_t sum = 0;
      const Row outer = covers_[i].first;
      for (; i < covers_.size() && covers_[i].first == outer; ++i) sum = plus(sum, covers_[i].second);
      const bool phase = outer != call.delegate && outer != call.call;
      cover(outer, sum, !phase && !call.phases.empty());
    }
  }

  static Row whole_of(const Call& call, Row method) {
    if (call.delegate != kNobody) return call.delegate;
    return call.call != kNobody ? call.call : method;
  }

  // The innermost phase around a layer, else what else is around it. Phases are few; a call with a great many
  // is no call of ours.
  Row phase_around(const Call& call, Row row, Row method) const {
    auto at = std::upper_bound(call.phases.begin(), call.phases.end(), start(row),
                               [this](std::int64_t time, Row phase) { return time < start(phase); });
    for (int steps = 0; at != call.phases.begin() && steps < kMostPhases; ++steps) {
      --at;
      if (end(*at) >= end(row) && out_.modeled[index(*at)] == 0) return *at;
    }
    for (const Row outer : {call.delegate, call.call, method}) {
      if (outer != kNobody && out_.modeled[index(outer)] == 0 && inside(row, outer)) return outer;
    }
    return kNobody;
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
      const Row whole = whole_of(call, method);
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
      cover(whole, sum, !call.phases.empty());
      cover(call.enqueue, engine_sum);
    });
  }

  void hang(Row row, Row outer) { out_.parent[index(row)] = outer; }

  // Parents of a run lie in the same run; each row's way up is walked once.
  void measure_depth(Row first, Row last) {
    for (Row row = first; row < last; ++row) {
      path_.clear();
      Row at = row;
      while (at != kNobody && out_.depth[index(at)] < 0) {
        path_.push_back(at);
        at = out_.parent[index(at)];
      }
      std::int32_t depth = at == kNobody ? -1 : out_.depth[index(at)];
      for (auto step = path_.rbegin(); step != path_.rend(); ++step) out_.depth[index(*step)] = ++depth;
    }
  }

  // Takes the time of children from their parent. `again`: other children have covered the same time already
  // (the layers of an engine run during its phases).
  void cover(Row outer, std::int64_t sum, bool again = false) {
    if (outer == kNobody || sum <= 0) return;
    std::int64_t& self = out_.self_ns[index(outer)];
    self = std::max<std::int64_t>(0, again ? std::min(self, duration(outer) - sum) : self - sum);
  }

  const Timeline& t_;
  std::size_t rows_;
  Arrangement out_;
  std::vector<std::int32_t> instance_;
  std::vector<Evidence> evidence_;
  std::vector<Row> members_;
  std::vector<Row> scoped_;
  std::vector<Row> roots_;
  std::vector<Row> path_;
  std::vector<std::pair<Row, std::int64_t>> covers_;
  std::vector<char> in_call_;  // a layer of a call that is known
  std::vector<std::int64_t> phase_reach_;
  Call call_;
  bool fine_clock_ = false;
};

}  // namespace

Arrangement arrange(const Timeline& timeline) { return Arranger(timeline).run(); }

}  // namespace torchtrt_viz::etdump
