// The rows of the timeline that events lie on, numbered as they are met.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/kineto/key_index.hpp"
#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

class Lanes {
 public:
  // The lane of a thread of the host or a stream of a device. Host and device work that a file puts under
  // one process and thread id is kept on two lanes.
  std::int32_t get(std::uint32_t process, std::uint32_t thread, LaneType type) {
    const Key key{(static_cast<std::uint64_t>(process) << 32) | thread, static_cast<std::uint64_t>(type)};
    if (key == last_key_) return last_;
    const std::uint32_t found = index_.insert(key);
    if (found == lane_of_.size()) {
      Lane made;
      made.type = type;
      made.process = process;
      made.thread = thread;
      lane_of_.push_back(add(made));
    }
    last_key_ = key;
    last_ = lane_of_[found];
    return last_;
  }

  // The lane of a thread or stream that has events; -1 when it has none.
  [[nodiscard]] std::int32_t find(std::uint32_t process, std::uint32_t thread, LaneType type) const {
    const std::uint32_t found =
        index_.find({(static_cast<std::uint64_t>(process) << 32) | thread, static_cast<std::uint64_t>(type)});
    return found == KeyIndex::kNone ? -1 : lane_of_[found];
  }

  // A lane of its own.
  std::int32_t add(const Lane& lane) {
    all_.push_back(lane);
    return static_cast<std::int32_t>(all_.size() - 1);
  }

  void saw_device(std::int32_t lane, std::int64_t device) {
    Lane& known = all_[static_cast<std::size_t>(lane)];
    if (known.device == Lane::kNoDevice) known.device = device;
  }

  [[nodiscard]] const std::vector<Lane>& all() const { return all_; }

 private:
  KeyIndex index_;
  std::vector<std::int32_t> lane_of_;  // by number in `index_`
  std::vector<Lane> all_;
  Key last_key_{~0ULL, ~0ULL};
  std::int32_t last_ = -1;
};

}  // namespace torchtrt_viz::kineto
