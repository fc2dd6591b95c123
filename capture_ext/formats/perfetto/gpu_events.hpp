// Work and counters of GPUs, which drivers and tools record as packets of their own.
//
// Stages of a queue become spans on the queue's track, a submission (vkQueueSubmit) a span of its thread,
// samples of counters, memory and frequency counters with their units, and log messages instants.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/perfetto/annotations.hpp"
#include "formats/perfetto/sequence.hpp"
#include "formats/perfetto/slices.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/tracks.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

struct Counters {
  std::vector<std::int32_t> track;
  std::vector<std::int64_t> ts;
  std::vector<double> value;
};

// Whether a packet's field is read here.
bool is_gpu_packet(std::uint32_t field);

// Gives the spans of work and of the calls that submitted it one number as correlation, and flows from what
// submits to the work, and from what is waited for to what waits. An id that several sequences gave to their
// work is nobody's.
void link_work(const Marks& marks, const RowOfMark& row_of_mark, Slices& slices);

class GpuEvents {
 public:
  GpuEvents(Strings& strings, Tracks& tracks, Arguments& arguments, Marks& marks, Counters& counters)
      : strings_(strings), tracks_(tracks), arguments_(arguments), marks_(marks), counters_(counters) {}

  struct Outcome {
    bool damaged = false;
    bool no_time = false;             // a duration that does not fit
    std::uint32_t missing_names = 0;  // ids that the sequence has not defined
  };
  // Whether the packet holds an event, which has to have a time: some only define names.
  static bool has_event(std::uint32_t field, Bytes message);
  // Takes in names and descriptions, which need no time.
  void describe(std::uint32_t field, Bytes message, Sequence& sequence, Outcome& outcome);
  // Takes in a packet's event; `bytes` is the size of the packet.
  void take(std::uint32_t field, Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes,
            Outcome& outcome);

 private:
  struct OldSpecifications {  // of 2019: ids are positions in the lists
    std::vector<GpuSpecification> queues;
    std::vector<GpuSpecification> stages;
    std::int64_t pid = -1;
  };
  class Details;

  void describe_old(Bytes message, Sequence& sequence, Outcome& outcome);
  [[nodiscard]] const OldSpecifications* old_of(const Sequence& sequence) const;
  void render_stage(Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes,
                    Outcome& outcome);
  void counter_event(Bytes message, const Sequence& sequence, std::int64_t ts, Outcome& outcome);
  void memory(Bytes message, std::int64_t ts, Outcome& outcome);
  void frequency(Bytes message, std::int64_t ts, Outcome& outcome);
  void log(Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes, Outcome& outcome);
  void submission(Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes, Outcome& outcome);

  void add_counter(std::int32_t track, std::int64_t ts, double value);
  std::int32_t keep(const Details& details, Sequence& sequence);

  Strings& strings_;
  Tracks& tracks_;
  Arguments& arguments_;
  Marks& marks_;
  Counters& counters_;
  std::map<std::uint32_t, OldSpecifications> old_;  // by sequence
  std::map<std::uint32_t, IdMap<GpuCounterSpec>> counter_specs_;
  IdMap<GpuCounterSpec> any_counter_specs_;  // of whatever sequence was first
  std::map<std::pair<std::int64_t, std::uint64_t>, std::int32_t> object_names_;
};

}  // namespace torchtrt_viz::perfetto
