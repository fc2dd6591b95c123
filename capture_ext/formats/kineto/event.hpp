// One trace event as it stands in the file, before anything is made of it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/io/interner.hpp"
#include "formats/kineto/number.hpp"

namespace torchtrt_viz::kineto {

inline constexpr std::int64_t kNoId = -1;

// Within what an id means the same thing. The format says so of "id2"; a plain "id" is of its process where
// it names asynchronous work, and of the recording where it names a flow.
enum class IdScope : std::uint8_t { plain, local, global };

// Views point into the window that is being read.
struct Event {
  std::uint64_t at = 0;  // byte offset of its opening brace in the uncompressed file
  char phase = '\0';
  char binding = '\0';  // "bp" of a flow
  NumberState ts_state = NumberState::absent;
  NumberState dur_state = NumberState::absent;
  bool unfinished = false;         // args.finished is false
  bool has_device = false;         // args.device is a number
  bool has_stream = false;         // args.stream is a number
  bool has_memory_totals = false;  // args carry the allocator's totals
  std::int64_t ts = 0;
  std::int64_t dur = 0;
  std::uint32_t name = Interner::kNone;
  std::uint32_t category = Interner::kNone;
  std::uint32_t process = Interner::kNone;
  std::uint32_t thread = Interner::kNone;
  std::int64_t correlation = kNoId;
  std::int64_t external_id = kNoId;
  std::int64_t python_id = kNoId;
  std::int64_t python_parent = kNoId;
  std::int64_t device = 0;
  std::string_view id;  // of a flow or asynchronous event, without quotes
  IdScope id_scope = IdScope::plain;
  std::string_view scope;  // of an asynchronous event
  std::string_view label;  // args.name or args.labels, between its quotes, still escaped
  std::int64_t sort_index = 0;
  std::int64_t device_type = 0;
  std::int64_t device_id = 0;
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
};

// Series of a counter: (name still escaped, text of the value).
using Series = std::vector<std::pair<std::string_view, std::string_view>>;

}  // namespace torchtrt_viz::kineto
