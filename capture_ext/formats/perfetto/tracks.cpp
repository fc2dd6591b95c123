#include "formats/perfetto/tracks.hpp"

#include <limits>
#include <utility>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

struct Process {
  std::int64_t pid = -1;
  std::int32_t name = kNone;
  std::int64_t order = 0;
};

struct Thread {
  std::int64_t pid = -1;
  std::int64_t tid = -1;
  std::int32_t name = kNone;
  std::int64_t order = 0;
  std::int64_t reference_us = 0;
};

Process read_process(Bytes message, Strings& strings) {
  Process process;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case process_field::kPid:
        process.pid = static_cast<std::int32_t>(fields.value());
        break;
      case process_field::kName:
        process.name = strings.code(fields.text());
        break;
      case process_field::kSortIndex:
        process.order = static_cast<std::int32_t>(fields.value());
        break;
      default:
        break;
    }
  }
  return process;
}

Thread read_thread(Bytes message, Strings& strings) {
  Thread thread;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case thread_field::kPid:
        thread.pid = static_cast<std::int32_t>(fields.value());
        break;
      case thread_field::kTid:
        thread.tid = fields.signed_value();
        break;
      case thread_field::kName:
        thread.name = strings.code(fields.text());
        break;
      case thread_field::kSortIndex:
        thread.order = static_cast<std::int32_t>(fields.value());
        break;
      case thread_field::kReferenceUs:
        thread.reference_us = fields.signed_value();
        break;
      default:
        break;
    }
  }
  return thread;
}

void read_counter(Bytes message, Strings& strings, Track& track) {
  std::uint64_t type = 0;
  std::uint64_t unit = 0;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case counter_field::kType:
        type = fields.value();
        break;
      case counter_field::kUnit:
        unit = fields.value();
        break;
      case counter_field::kMultiplier:
        if (fields.signed_value() > 0) track.multiplier = static_cast<double>(fields.signed_value());
        break;
      case counter_field::kIncremental:
        track.incremental = fields.value() != 0;
        break;
      case counter_field::kUnitName:
        track.unit = strings.code(fields.text());
        break;
      default:
        break;
    }
  }
  if (track.unit == kNone && (unit == 1 || type == 1)) track.unit = strings.code("ns");
  if (track.unit == kNone && (unit == 2 || type == 2)) track.unit = strings.code("count");
  if (track.unit == kNone && unit == 3) track.unit = strings.code("bytes");
  if (track.name == kNone && type == 1) track.name = strings.code("thread_time");
  if (track.name == kNone && type == 2) track.name = strings.code("thread_instruction_count");
}

}  // namespace

std::int32_t Tracks::add(Track track) {
  tracks_.push_back(track);
  return static_cast<std::int32_t>(tracks_.size() - 1);
}

std::int32_t Tracks::of_uuid(std::uint64_t uuid) {
  const auto [found, fresh] = by_uuid_.try_emplace(uuid, 0);
  if (fresh) {
    Track track;
    track.uuid = uuid;
    found->second = add(track);
  }
  return found->second;
}

std::int32_t Tracks::of_thread(std::int64_t pid, std::int64_t tid) {
  const auto [found, fresh] = by_thread_.try_emplace({pid, tid}, 0);
  if (fresh) {
    Track track;
    track.kind = TrackKind::kThread;
    track.pid = pid;
    track.tid = tid;
    found->second = add(track);
  }
  return found->second;
}

std::int32_t Tracks::of_sequence(std::uint32_t sequence) {
  const auto [found, fresh] = by_sequence_.try_emplace(sequence, 0);
  if (fresh) {
    Track track;
    track.kind = TrackKind::kSequence;
    track.tid = sequence;
    found->second = add(track);
  }
  return found->second;
}

std::int32_t Tracks::of_async(std::int64_t pid, std::int32_t scope, std::uint64_t id, std::int32_t name) {
  const auto [found, fresh] = by_async_.try_emplace({pid, scope, id}, 0);
  if (fresh) {
    Track track;
    track.kind = TrackKind::kAsync;
    track.pid = pid;
    track.name = name;
    found->second = add(track);
  }
  return found->second;
}

std::int32_t Tracks::of_queue(std::int32_t device, std::int64_t pid, std::uint64_t queue, bool interned,
                              std::int32_t name) {
  const auto [found, fresh] = by_queue_.try_emplace({device, pid, queue, interned, name}, 0);
  if (fresh) {
    Track track;
    track.kind = TrackKind::kQueue;
    track.gpu = true;
    track.device = device;
    track.pid = pid;
    track.tid = queue <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                    ? static_cast<std::int64_t>(queue)
                    : -1;
    track.name = name;
    found->second = add(track);
  }
  return found->second;
}

std::int32_t Tracks::of_gpu_counter(std::int32_t device, std::int64_t pid, std::int32_t name,
                                    std::int32_t unit) {
  const auto [found, fresh] = by_gpu_counter_.try_emplace({device, pid, name, unit}, 0);
  if (fresh) {
    Track track;
    track.kind = TrackKind::kCounter;
    track.gpu = true;
    track.device = device;
    track.pid = pid;
    track.name = name;
    track.unit = unit;
    found->second = add(track);
  }
  return found->second;
}

std::int32_t Tracks::of_log(std::uint32_t sequence, std::int32_t name) {
  const auto [found, fresh] = by_log_.try_emplace(sequence, 0);
  if (fresh) {
    Track track;
    track.name = name;
    found->second = add(track);
  }
  return found->second;
}

bool Tracks::describe(Bytes message, Strings& strings) {
  Track read;
  bool process = false;
  bool thread = false;
  bool counter = false;
  Bytes counter_message;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case descriptor_field::kUuid:
        read.uuid = fields.value();
        break;
      case descriptor_field::kParent:
        read.parent = fields.value();
        break;
      case descriptor_field::kName:
      case descriptor_field::kStaticName:
      case descriptor_field::kAtraceName:
        read.name = strings.code(fields.text());
        break;
      case descriptor_field::kDescription:
        read.description = strings.code(fields.text());
        break;
      case descriptor_field::kOrderRank:
        read.order = static_cast<std::int32_t>(fields.value());
        break;
      case descriptor_field::kProcess: {
        const Process found = read_process(fields.bytes(), strings);
        read.pid = found.pid;
        read.process_name = found.name;
        if (found.order != 0) read.order = found.order;
        process = true;
        break;
      }
      case descriptor_field::kThread: {
        const Thread found = read_thread(fields.bytes(), strings);
        read.pid = found.pid;
        read.tid = found.tid;
        read.thread_name = found.name;
        if (found.order != 0) read.order = found.order;
        thread = true;
        break;
      }
      case descriptor_field::kGpuTrack: {  // GpuTrackDescriptor: gpu_id = 1
        read.gpu = true;
        Fields gpu(fields.bytes());
        while (gpu.next()) {
          if (gpu.number() == 1) read.device = static_cast<std::int32_t>(gpu.value());
        }
        break;
      }
      case descriptor_field::kCounter:
        counter_message = fields.bytes();
        counter = true;
        break;
      default:
        break;
    }
  }
  if (fields.damaged()) return false;
  if (counter) read_counter(counter_message, strings, read);
  read.kind = counter   ? TrackKind::kCounter
              : thread  ? TrackKind::kThread
              : process ? TrackKind::kProcess
                        : TrackKind::kCustom;
  read.described = true;
  Track& track = tracks_[static_cast<std::size_t>(of_uuid(read.uuid))];
  if (track.described) {  // a later descriptor updates what it says, and no more
    if (read.name == kNone) read.name = track.name;
    if (read.parent == 0) read.parent = track.parent;
    if (read.pid < 0) read.pid = track.pid;
    if (read.process_name == kNone) read.process_name = track.process_name;
    if (read.thread_name == kNone) read.thread_name = track.thread_name;
    if (read.unit == kNone) read.unit = track.unit;
    if (read.description == kNone) read.description = track.description;
    if (read.order == 0) read.order = track.order;
    if (read.device < 0) read.device = track.device;
    read.gpu |= track.gpu;
    if (read.kind == TrackKind::kCustom) read.kind = track.kind;
    if (!counter) {
      read.multiplier = track.multiplier;
      read.incremental = track.incremental;
    }
  }
  read.total = track.total;
  read.clears = track.clears;
  track = read;
  return true;
}

void Tracks::describe_process(Bytes message, Strings& strings) {
  const Process process = read_process(message, strings);
  if (process.name != kNone) process_names_[process.pid] = process.name;
}

void Tracks::describe_thread(Bytes message, Strings& strings, Sequence& sequence) {
  const Thread thread = read_thread(message, strings);
  sequence.has_thread = true;
  sequence.pid = thread.pid;
  sequence.tid = thread.tid;
  sequence.reference_us = thread.reference_us;
  if (thread.name != kNone) thread_names_[{thread.pid, thread.tid}] = thread.name;
}

bool Tracks::describe_tree(Bytes message, Strings& strings) {
  Fields fields(message);
  bool whole = true;
  while (fields.next()) {
    std::int64_t id = -1;
    std::int64_t group = -1;
    std::int32_t name = kNone;
    Fields entry(fields.bytes());
    if (fields.number() == 1) {  // Process: pid = 1, cmdline = 3
      while (entry.next()) {
        if (entry.number() == 1) id = static_cast<std::int32_t>(entry.value());
        if (entry.number() == 3 && name == kNone) name = strings.code(entry.text());
      }
      if (id >= 0 && name != kNone) process_names_.try_emplace(id, name);
    } else if (fields.number() == 2) {  // Thread: tid = 1, name = 2, tgid = 3
      while (entry.next()) {
        if (entry.number() == 1) id = static_cast<std::int32_t>(entry.value());
        if (entry.number() == 2) name = strings.code(entry.text());
        if (entry.number() == 3) group = static_cast<std::int32_t>(entry.value());
      }
      if (id >= 0 && name != kNone) thread_names_.try_emplace({group, id}, name);
    }
    whole &= !entry.damaged();
  }
  return whole && !fields.damaged();
}

void Tracks::fill_names() {
  for (const Track& track : tracks_) {
    if (track.process_name != kNone) process_names_.try_emplace(track.pid, track.process_name);
    if (track.thread_name != kNone) thread_names_.try_emplace({track.pid, track.tid}, track.thread_name);
  }
  for (Track& track : tracks_) {
    if (track.pid < 0) continue;
    if (track.process_name == kNone) {
      if (const auto found = process_names_.find(track.pid); found != process_names_.end()) {
        track.process_name = found->second;
      }
    }
    if (track.thread_name == kNone && track.kind == TrackKind::kThread) {
      if (const auto found = thread_names_.find({track.pid, track.tid}); found != thread_names_.end()) {
        track.thread_name = found->second;
      }
    }
  }
}

}  // namespace torchtrt_viz::perfetto
