// Spans out of begin and end events, on one thread or asynchronous.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/kineto/lanes.hpp"
#include "formats/kineto/notes.hpp"
#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

struct PairedEvent {
  std::uint64_t at = 0;
  std::int64_t ts = 0;
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;
  std::uint64_t group = 0;  // the thread, or the asynchronous (category, id, scope of the id)
  std::uint32_t process = Interner::kNone;
  std::uint32_t thread = Interner::kNone;
  std::uint32_t category = Interner::kNone;
  std::uint32_t name = Interner::kNone;
  std::uint8_t kind = 0;
  std::uint8_t domain = 0;
  bool begins = false;
  bool asynchronous = false;
};

// Where the end event of a span lies, for its arguments.
struct EndOffset {
  std::int64_t row = 0;
  std::int64_t at = 0;
};

// Appends the spans to `spans` and begins without an end to `instants`. Begins and ends match innermost
// first in the order of time; an end that has a name closes the innermost begin of that name and no other.
// Asynchronous work gets lanes on which nothing overlaps.
std::vector<EndOffset> pair(std::vector<PairedEvent>& events, Spans& spans, Instants& instants, Lanes& lanes,
                            Notes& notes);

// Brings spans into the order of the file, and end offsets with them. Returns the old row of each new one,
// empty when the order was right already.
std::vector<std::uint32_t> restore_order(Spans& spans, std::vector<EndOffset>& ends);

}  // namespace torchtrt_viz::kineto
