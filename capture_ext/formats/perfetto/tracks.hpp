// Tracks of a trace: what descriptors say of them, or as much as events that name them tell.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "formats/perfetto/sequence.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

enum class TrackKind : std::uint8_t { kCustom, kProcess, kThread, kCounter, kSequence, kAsync, kQueue };

struct Track {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;  // 0 none
  TrackKind kind = TrackKind::kCustom;
  std::int32_t name = kNone;
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  std::int32_t process_name = kNone;
  std::int32_t thread_name = kNone;
  std::int32_t unit = kNone;
  std::int32_t description = kNone;
  std::int64_t order = 0;
  bool described = false;
  bool gpu = false;          // of a GPU, as the packet that its events come in says
  std::int32_t device = -1;  // which one; -1 not said
  // Counters
  double multiplier = 1;
  bool incremental = false;
  double total = 0;
  std::uint32_t clears = 0;  // of the sequence, when `total` was last set to 0
};

class Tracks {
 public:
  // Row of a track that an event or a descriptor names.
  std::int32_t of_uuid(std::uint64_t uuid);
  // Row of the thread's track (events without a uuid, of writers of 2019).
  std::int32_t of_thread(std::int64_t pid, std::int64_t tid);
  // Row of a track for events that name none at all.
  std::int32_t of_sequence(std::uint32_t sequence);
  // Row of a legacy asynchronous operation: its events share id, scope and process.
  std::int32_t of_async(std::int64_t pid, std::int32_t scope, std::uint64_t id, std::int32_t name);

  // Row of a hardware queue. Queues of one name and number are one where their GPU and process are, whatever
  // sequence tells of them; `interned` tells numbers of the two ways to give them apart.
  std::int32_t of_queue(std::int32_t device, std::int64_t pid, std::uint64_t queue, bool interned,
                        std::int32_t name);
  // Row of a counter of a GPU, of a process where `pid` is not -1.
  std::int32_t of_gpu_counter(std::int32_t device, std::int64_t pid, std::int32_t name, std::int32_t unit);
  // Row of what a sequence's driver says by itself.
  std::int32_t of_log(std::uint32_t sequence, std::int32_t name);

  // Takes in a TrackDescriptor; false when it is damaged.
  bool describe(Bytes message, Strings& strings);
  // Take in the packets' ProcessDescriptor and ThreadDescriptor (writers of 2019).
  void describe_process(Bytes message, Strings& strings);
  void describe_thread(Bytes message, Strings& strings, Sequence& sequence);

  // Takes in a ProcessTree, the names of processes and threads of the whole system; false when it is damaged.
  bool describe_tree(Bytes message, Strings& strings);

  Track& operator[](std::int32_t row) { return tracks_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] const std::vector<Track>& all() const { return tracks_; }
  // Gives process and thread names to tracks that know only their ids; to be called at the end.
  void fill_names();

 private:
  std::int32_t add(Track track);

  std::vector<Track> tracks_;
  IdMap<std::int32_t> by_uuid_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> by_thread_;
  IdMap<std::int32_t> by_sequence_;
  std::map<std::tuple<std::int64_t, std::int32_t, std::uint64_t>, std::int32_t> by_async_;
  std::map<std::tuple<std::int32_t, std::int64_t, std::uint64_t, bool, std::int32_t>, std::int32_t> by_queue_;
  std::map<std::tuple<std::int32_t, std::int64_t, std::int32_t, std::int32_t>, std::int32_t> by_gpu_counter_;
  std::map<std::uint32_t, std::int32_t> by_log_;
  std::map<std::int64_t, std::int32_t> process_names_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> thread_names_;
};

}  // namespace torchtrt_viz::perfetto
