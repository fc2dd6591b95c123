// State of one packet sequence: what it interned, its defaults, and whether that state can be relied on.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "formats/perfetto/gpu_interned.hpp"
#include "formats/perfetto/ids.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

struct SourceLocation {
  std::int32_t file = kNone;
  std::int32_t function = kNone;
  std::uint32_t line = 0;
};

// Strings that a sequence has interned since its state was last cleared, as codes of Strings. Kept after the
// state is cleared for the arguments of earlier events, which are read on demand.
struct Interned {
  IdMap<std::int32_t> categories;
  IdMap<std::int32_t> names;
  IdMap<std::int32_t> annotation_names;
  IdMap<std::int32_t> annotation_strings;
  IdMap<std::int32_t> log_bodies;
  IdMap<std::int32_t> correlation_texts;
  IdMap<SourceLocation> locations;

  // Adds the entries of an InternedData message; false when it is damaged.
  bool add(Bytes data, Strings& strings);
};

SourceLocation read_location(Bytes message, Strings& strings, std::uint64_t* iid = nullptr);

constexpr std::uint32_t kNoEpoch = 0xFFFFFFFF;

struct Defaults {
  std::optional<std::uint64_t> track;
  std::uint32_t clock = 0;
  std::vector<std::uint64_t> extra;
  std::vector<std::uint64_t> extra_double;
};

struct Sequence {
  std::uint32_t id = 0;
  // Set by a packet that clears the state, lost with a dropped packet. Writers that never clear and never ask
  // for the state are read all the same.
  bool state_valid = false;
  std::uint32_t epoch = kNoEpoch;  // row of Decoder's table of Interned
  std::uint32_t clears = 0;
  Defaults defaults;
  InternedGpu gpu;
  // Descriptor of the thread that writes the sequence (writers of 2019).
  bool has_thread = false;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::int64_t reference_us = 0;
  // Last time on each incremental clock, in nanoseconds.
  std::unordered_map<std::uint32_t, std::int64_t> incremental;

  void clear_state();
};

Defaults read_defaults(Bytes message);

}  // namespace torchtrt_viz::perfetto
