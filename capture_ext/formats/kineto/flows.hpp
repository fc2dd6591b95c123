// Flow events: which span leads to which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/io/column.hpp"
#include "formats/kineto/key_index.hpp"
#include "formats/kineto/lanes.hpp"
#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

// Flow events as they come. Most producers write a flow event right behind the span that it belongs to; only
// the others keep their place and are looked up in the end.
class FlowPoints {
 public:
  enum class Phase : std::uint8_t { start, step, end };

  struct Place {  // of a point whose span is not known yet
    std::uint32_t process = Interner::kNone;
    std::uint32_t thread = Interner::kNone;
    std::int64_t ts = 0;
    bool enclosing = true;  // of the span around `ts`, else of the next one to begin
  };

  struct Id {
    std::uint32_t category = Interner::kNone;
    std::uint32_t name = Interner::kNone;
    std::int64_t id = -1;
    bool textual = false;     // `id` is the code of a text, or -1 for none
    std::uint64_t scope = 0;  // within which the id means the same thing; 0: everywhere
  };

  void add(Phase phase, const Id& id, std::int64_t row) { push(phase, id, row); }
  void add(Phase phase, const Id& id, const Place& place);
  // Spans were reordered: gives rows their new numbers.
  void renumber(const std::vector<std::uint32_t>& old_row_of);
  // The same by the new row of each old one, kNoRow for rows that are left out.
  void move_to(std::span<const std::uint32_t> new_row_of);
  static constexpr std::uint32_t kNoRow = 0xFFFFFFFF;
  [[nodiscard]] bool empty() const { return phase_.empty(); }

  // Pairs the points by (category, name, scope, id). An end is led to by the start, or the last step before
  // it in time where an id is used more than once; -1 stands for a side that the file does not have.
  Flows connect(const Spans& spans, const Lanes& lanes);

 private:
  struct Kind {
    std::uint32_t category;
    bool textual;
  };

  struct Group {  // the points of one id
    std::int64_t start_row = -1;
    std::uint32_t starts = 0;
    std::uint32_t steps = 0;
    std::uint32_t ends = 0;
    [[nodiscard]] bool simple() const { return starts <= 1 && steps == 0; }
  };

  void push(Phase phase, const Id& id, std::int64_t row);
  void locate(const Spans& spans, const Lanes& lanes);
  void chain(const Spans& spans, std::vector<std::uint32_t>& points,
             const std::vector<std::uint32_t>& group_of, Flows& out) const;
  void emit(Flows& out, std::size_t point, std::int64_t source, std::int64_t target) const;
  [[nodiscard]] std::int64_t row_of(std::size_t point) const;
  [[nodiscard]] std::int64_t time_of(const Spans& spans, std::size_t point) const;

  Column<std::uint8_t> phase_;
  Column<std::uint32_t> kind_;  // number in `kinds_`
  Column<std::int64_t> id_;
  Column<std::int64_t> row_;  // row of the span, or -2 - index of its place
  std::vector<Place> places_;
  std::vector<std::int64_t> found_;  // row of the span at each place, -1 none
  KeyIndex kind_index_;
  std::vector<Kind> kinds_;
};

}  // namespace torchtrt_viz::kineto
