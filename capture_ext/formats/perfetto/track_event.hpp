// One TrackEvent message, with its interned names looked up.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/perfetto/sequence.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

struct FlowUse {
  std::uint64_t id;
  bool terminating;
};

// Ids that link events to one another, kept as columns beside the other arguments.
struct Links {
  std::int64_t correlation = -1;
  std::int64_t external_id = -1;
  std::int64_t corr_id = -1;
  std::int32_t iteration = -1;
  std::int32_t run = kNone;

  [[nodiscard]] bool any() const {
    return correlation != -1 || external_id != -1 || corr_id != -1 || iteration != -1 || run != kNone;
  }
};

struct LegacyEvent {
  char phase = 0;
  std::int64_t duration_us = 0;
  bool has_id = false;
  std::uint64_t id = 0;
  bool local = false;
  std::int32_t scope = kNone;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> tid;
  bool binds = false;  // it is an end of a flow of the trace-event format
};

struct TrackEvent {
  std::uint64_t type = 0;
  std::optional<std::uint64_t> track;
  std::int32_t name = kNone;
  std::int32_t category = kNone;
  std::optional<std::int64_t> delta_us;
  std::optional<std::int64_t> absolute_us;
  std::optional<double> value;
  std::vector<double> extra_values;
  std::vector<double> extra_double_values;
  std::vector<std::uint64_t> extra_tracks;
  std::vector<std::uint64_t> extra_double_tracks;
  std::vector<FlowUse> flows;
  std::vector<Bytes> arguments;        // encoded fields, tags included
  std::vector<std::uint64_t> submits;  // ids of GPU work that it submitted
  std::vector<std::uint64_t> waits;    // and of work that it waited for
  std::optional<LegacyEvent> legacy;
  Links links;
  std::uint32_t missing_names = 0;  // interned ids that the sequence has not defined

  void clear();
};

// Names of the annotations that become columns.
struct LinkNames {
  explicit LinkNames(Strings& strings);
  std::int32_t correlation, external_id, external_id_kineto, corr_id, iteration, run;
};

// Reads a message into `event`; false when it is damaged.
bool read_track_event(Bytes message, const Interned* interned, const LinkNames& names, Strings& strings,
                      TrackEvent& event);

}  // namespace torchtrt_viz::perfetto
