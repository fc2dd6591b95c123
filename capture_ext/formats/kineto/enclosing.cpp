#include "formats/kineto/enclosing.hpp"

#include <algorithm>
#include <tuple>

namespace torchtrt_viz::kineto {
namespace {

struct Entry {
  std::int64_t start;
  std::int64_t end;
  std::uint32_t row;
};

// Answers the queries [from, to) of one lane; `entries` are its spans by start, outer before inner.
void sweep(const std::vector<Entry>& entries, std::vector<PlaceQuery>& queries, std::size_t from,
           std::size_t to) {
  std::vector<const Entry*> open;
  std::size_t next = 0;
  for (std::size_t i = from; i < to; ++i) {
    PlaceQuery& query = queries[i];
    if (!query.enclosing) {
      const auto first =
          std::lower_bound(entries.begin(), entries.end(), query.ts,
                           [](const Entry& entry, std::int64_t ts) { return entry.start < ts; });
      query.row = first == entries.end() ? -1 : std::int64_t{first->row};
      continue;
    }
    while (next < entries.size() && entries[next].start <= query.ts) open.push_back(&entries[next++]);
    // What ended before this moment ended before every later one as well.
    while (!open.empty() && open.back()->end < query.ts) open.pop_back();
    query.row = open.empty() ? -1 : std::int64_t{open.back()->row};
  }
}

}  // namespace

void find_spans(const Spans& spans, std::size_t lanes, std::vector<PlaceQuery>& queries) {
  std::sort(queries.begin(), queries.end(), [](const PlaceQuery& a, const PlaceQuery& b) {
    return std::tie(a.lane, a.ts, a.place) < std::tie(b.lane, b.ts, b.place);
  });
  constexpr std::uint32_t kNotAsked = 0xFFFFFFFF;
  std::vector<std::uint32_t> asked(lanes, kNotAsked);
  std::vector<std::size_t> first_query;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    std::uint32_t& number = asked[static_cast<std::size_t>(queries[i].lane)];
    if (number != kNotAsked) continue;
    number = static_cast<std::uint32_t>(first_query.size());
    first_query.push_back(i);
  }
  // Spans of the lanes that are asked about, grouped by lane.
  std::vector<std::size_t> end_of(first_query.size() + 1, 0);
  for (std::size_t row = 0; row < spans.size(); ++row) {
    const std::uint32_t number = asked[static_cast<std::size_t>(spans.lane[row])];
    if (number != kNotAsked) ++end_of[number + 1];
  }
  for (std::size_t i = 1; i < end_of.size(); ++i) end_of[i] += end_of[i - 1];
  std::vector<std::uint32_t> rows(end_of.back());
  std::vector<std::size_t> fill(end_of.begin(), end_of.end() - 1);
  for (std::size_t row = 0; row < spans.size(); ++row) {
    const std::uint32_t number = asked[static_cast<std::size_t>(spans.lane[row])];
    if (number != kNotAsked) rows[fill[number]++] = static_cast<std::uint32_t>(row);
  }
  std::vector<Entry> entries;
  for (std::size_t lane = 0; lane < first_query.size(); ++lane) {
    entries.clear();
    for (std::size_t i = end_of[lane]; i < end_of[lane + 1]; ++i) {
      const std::uint32_t row = rows[i];
      entries.push_back({spans.start[row], spans.start[row] + spans.dur[row], row});
    }
    const auto outer_first = [](const Entry& a, const Entry& b) {
      return std::tie(a.start, b.end, a.row) < std::tie(b.start, a.end, b.row);
    };
    if (!std::is_sorted(entries.begin(), entries.end(), outer_first)) {
      std::sort(entries.begin(), entries.end(), outer_first);
    }
    const std::size_t to = lane + 1 < first_query.size() ? first_query[lane + 1] : queries.size();
    sweep(entries, queries, first_query[lane], to);
  }
}

}  // namespace torchtrt_viz::kineto
