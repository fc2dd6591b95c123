// Sorts events into tables as they come, and finishes what can only be known at the end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/kineto/event.hpp"
#include "formats/kineto/flows.hpp"
#include "formats/kineto/key_index.hpp"
#include "formats/kineto/lanes.hpp"
#include "formats/kineto/notes.hpp"
#include "formats/kineto/pairs.hpp"
#include "formats/kineto/tables.hpp"
#include "formats/kineto/vocabulary.hpp"

namespace torchtrt_viz::kineto {

class Collector {
 public:
  Collector(const Vocabulary& vocabulary, Strings& strings, Notes& notes)
      : vocabulary_(vocabulary), strings_(strings), notes_(notes) {}

  // Takes one event. `series` are the arguments of a counter event.
  void add(const Event& event, const Series& series);

  // For each lane the number of the rank, from 1, whose mark its process id carries; 0 for none.
  [[nodiscard]] std::vector<std::uint32_t> ranks_of_lanes();

  // Pairs begins with ends. After it rows of spans are final.
  void finish();

  Spans spans;
  Instants instants;
  Counters counters;
  Lanes lanes;
  std::vector<SeriesName> series_names;
  std::vector<Label> labels;
  std::vector<std::uint64_t> category_counts;  // events by category code
  std::uint64_t events = 0;
  FlowPoints flows;
  std::vector<EndOffset> end_offsets;    // of spans made of a begin and an end
  std::vector<PythonCall> python_calls;  // spans that state which call they are and who called them
  Counts counts;

 private:
  struct Resolved {
    std::uint8_t kind;
    std::uint8_t domain;
  };

  [[nodiscard]] Resolved resolve(const Event& event);
  std::int32_t lane(const Event& event, const Resolved& what);
  void span_or_instant(const Event& event);
  void instant(const Event& event, InstantState state);
  void counter(const Event& event, const Series& series);
  void allocator_totals(const Event& event);
  void push_counter(const Event& event, const SeriesName& name, double value);
  void metadata(const Event& event);
  void flow(const Event& event);
  void paired(const Event& event, bool asynchronous);

  void leave_out_zero_times();
  void move_rows(std::span<const std::uint32_t> new_row_of);
  [[nodiscard]] std::uint32_t group_of(std::uint32_t process);
  [[nodiscard]] std::uint64_t id_scope(const Event& event, std::uint64_t plain);

  const Vocabulary& vocabulary_;
  Strings& strings_;
  Notes& notes_;
  std::vector<Meaning> category_meanings_;
  std::vector<Vocabulary::Rules> name_rules_;
  KeyIndex series_index_;
  KeyIndex label_index_;
  KeyIndex async_index_;
  Key last_span_{~0ULL, ~0ULL};  // thread and start of the last row of `spans`
  std::vector<PairedEvent> paired_;
  std::vector<std::uint32_t> process_groups_;  // by code of the process, 0 not looked up yet
  std::unordered_map<std::string, std::uint32_t> groups_;
};

}  // namespace torchtrt_viz::kineto
