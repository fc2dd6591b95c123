#include "formats/perfetto/gpu_events.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "formats/perfetto/clocks.hpp"
#include "formats/perfetto/fields.hpp"
#include "formats/perfetto/protobuf.hpp"

namespace torchtrt_viz::perfetto {
namespace {

// Attributes of a kernel are written once and referred to by many small packets.
constexpr std::size_t kMostAttributes = 16;
// Interned strings of a file are numbered from 1 on: numbers of this end are for strings of the table.
constexpr std::uint64_t kOwnString = std::uint64_t{1} << 63;

// VkObjectType
constexpr std::int64_t kVkCommandBuffer = 6, kVkRenderPass = 18, kVkFramebuffer = 24;

constexpr std::array<const char*, 6> kApis = {"", "OpenGL", "Vulkan", "OpenCL", "CUDA", "HIP"};
constexpr std::array<const char*, 3> kStageCategories = {"other", "graphics", "compute"};
constexpr std::array<const char*, 6> kSeverities = {"unspecified", "verbose", "debug",
                                                    "info",        "warning", "error"};

template <std::size_t Size>
const char* one_of(const std::array<const char*, Size>& names, std::uint64_t value) {
  return value < Size ? names[value] : "";
}

struct Dimensions {
  std::uint64_t x = 1, y = 1, z = 1;
};

Dimensions read_dimensions(Bytes message) {
  Dimensions out;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) out.x = fields.value();
    if (fields.number() == 2) out.y = fields.value();
    if (fields.number() == 3) out.z = fields.value();
  }
  return out;
}

std::int32_t found_in(const IdMap<std::int32_t>& table, std::uint64_t iid) {
  const auto found = table.find(iid);
  return found == table.end() ? kNone : found->second;
}

struct RenderStage {
  std::optional<std::uint64_t> event, duration, queue_iid, stage_iid, context, submission, name_iid,
      kernel_iid, render_target, render_pass, render_pass_instance, command_buffer, logical_queue;
  std::uint64_t queue = 0;
  std::uint64_t stage = 0;
  std::int32_t gpu = -1;
  std::string_view name;
  bool has_name = false;
  std::vector<Bytes> extra;
  Bytes launch;
  bool has_launch = false;
  std::vector<std::uint64_t> waits;
  bool damaged = false;
};

RenderStage read_stage(Bytes message) {
  using namespace render_stage_field;
  RenderStage out;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case kEventId:
        out.event = fields.value();
        break;
      case kDuration:
        out.duration = fields.value();
        break;
      case kQueueId:
        out.queue = static_cast<std::uint32_t>(fields.value());
        break;
      case kStageId:
        out.stage = static_cast<std::uint32_t>(fields.value());
        break;
      case kContext:
        out.context = fields.value();
        break;
      case kExtraData:
        out.extra.push_back(fields.bytes());
        break;
      case kRenderTarget:
        out.render_target = fields.value();
        break;
      case kRenderPass:
        out.render_pass = fields.value();
        break;
      case kSubmissionId:
        out.submission = fields.value();
        break;
      case kGpuId:
        out.gpu = static_cast<std::int32_t>(fields.value());
        break;
      case kCommandBuffer:
        out.command_buffer = fields.value();
        break;
      case kQueueIid:
        out.queue_iid = fields.value();
        break;
      case kStageIid:
        out.stage_iid = fields.value();
        break;
      case kRenderPassInstance:
        out.render_pass_instance = fields.value();
        break;
      case kName:
        out.name = fields.text();
        out.has_name = true;
        break;
      case kWaitIds:
        fields.each([&](std::uint64_t id) { out.waits.push_back(id); });
        break;
      case kKernelIid:
        out.kernel_iid = fields.value();
        break;
      case kNameIid:
        out.name_iid = fields.value();
        break;
      case kLaunch:
        out.launch = fields.bytes();
        out.has_launch = true;
        break;
      case kLogicalQueue:
        out.logical_queue = fields.value();
        break;
      default:
        break;
    }
  }
  out.damaged = fields.damaged();
  return out;
}

bool is_of_event(std::uint32_t field) {
  using namespace render_stage_field;
  return field != kSpecifications && field != kContext && field != kGpuId;
}

GpuSpecification read_description(Bytes message, Strings& strings) {
  GpuSpecification out;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) out.name = strings.code(fields.text());
    if (fields.number() == 2) out.description = strings.code(fields.text());
  }
  return out;
}

}  // namespace

// Arguments of an event, encoded as the debug annotations of track events are.
class GpuEvents::Details {
 public:
  void number(std::string_view name, std::uint64_t value) { add(name, value_of(3, value)); }
  void integer(std::string_view name, std::int64_t value) {
    add(name, value_of(4, static_cast<std::uint64_t>(value)));
  }
  void real(std::string_view name, double value) {
    std::string body;
    protobuf::varint(body, 5U << 3U | 1U);
    const auto bits = std::bit_cast<std::array<char, 8>>(value);
    body.append(bits.data(), bits.size());
    add(name, body);
  }
  void text(std::string_view name, std::string_view value) {
    std::string body;
    protobuf::bytes(body, annotation_field::kString, value);
    add(name, body);
  }
  // A string of the table, however long, as its number.
  void known(std::string_view name, std::int32_t code) {
    if (code == kNone) return;
    codes_.push_back(code);
    add(name, value_of(annotation_field::kStringIid, kOwnString + static_cast<std::uint64_t>(code)));
  }
  void numbers(std::string_view name, std::initializer_list<std::uint64_t> values) {
    std::string body;
    for (const std::uint64_t value : values)
      protobuf::bytes(body, annotation_field::kArray, value_of(3, value));
    add(name, body);
  }

  [[nodiscard]] const std::string& encoded() const { return encoded_; }
  [[nodiscard]] const std::vector<std::int32_t>& codes() const { return codes_; }

 private:
  static std::string value_of(std::uint32_t field, std::uint64_t value) {
    std::string out;
    protobuf::integer(out, field, value);
    return out;
  }
  void add(std::string_view name, const std::string& value) {
    std::string body;
    protobuf::bytes(body, annotation_field::kName, name);
    body += value;
    protobuf::bytes(encoded_, event_field::kDebugAnnotations, body);
  }

  std::string encoded_;
  std::vector<std::int32_t> codes_;
};

bool is_gpu_packet(std::uint32_t field) {
  using namespace packet_field;
  return field == kGpuCounters || field == kGpuRenderStage || field == kGpuLog || field == kVulkanApi ||
         field == kGpuMemory || field == kGpuFrequency;
}

bool GpuEvents::has_event(std::uint32_t field, Bytes message) {
  Fields fields(message);
  while (fields.next()) {
    switch (field) {
      case packet_field::kGpuRenderStage:
        // what defines the names of 2019 may come without an event
        if (is_of_event(fields.number())) return true;
        break;
      case packet_field::kGpuCounters:
        if (fields.number() == 2) return true;
        break;
      case packet_field::kVulkanApi:
        if (fields.number() != 1) return true;
        break;
      default:
        return true;
    }
  }
  return fields.damaged();
}

void GpuEvents::describe(std::uint32_t field, Bytes message, Sequence& sequence, Outcome& outcome) {
  std::optional<std::int32_t> gpu;
  std::vector<Bytes> described;
  Fields fields(message);
  while (fields.next()) {
    if (field == packet_field::kGpuRenderStage && fields.number() == render_stage_field::kSpecifications) {
      describe_old(fields.bytes(), sequence, outcome);
    }
    if (field == packet_field::kGpuCounters && fields.number() == 1) described.push_back(fields.bytes());
    if (field == packet_field::kGpuCounters && fields.number() == 3) {
      gpu = static_cast<std::int32_t>(fields.value());
    }
    if (field == packet_field::kVulkanApi && fields.number() == 1) {
      std::int64_t type = 0;
      std::uint64_t object = 0;
      std::int32_t name = kNone;
      Fields said(fields.bytes());
      while (said.next()) {
        if (said.number() == 3) type = said.signed_value();
        if (said.number() == 4) object = said.value();
        if (said.number() == 5) name = strings_.code(said.text());
      }
      outcome.damaged |= said.damaged();
      object_names_[{type, object}] = name;
    }
  }
  for (const Bytes descriptor : described) {
    outcome.damaged |= !read_counter_specs(descriptor, gpu, strings_, counter_specs_[sequence.id]);
    outcome.damaged |= !read_counter_specs(descriptor, gpu, strings_, any_counter_specs_);
  }
  outcome.damaged |= fields.damaged();
}

void GpuEvents::describe_old(Bytes message, Sequence& sequence, Outcome& outcome) {
  OldSpecifications& old = old_[sequence.id];
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 2) old.queues.push_back(read_description(fields.bytes(), strings_));
    if (fields.number() == 3) old.stages.push_back(read_description(fields.bytes(), strings_));
    if (fields.number() == 1) {
      Fields context(fields.bytes());
      while (context.next()) {
        if (context.number() == 2) old.pid = static_cast<std::int32_t>(context.value());
      }
    }
  }
  outcome.damaged |= fields.damaged();
}

// A session has one packet of them; where several sequences wrote one, each has its own numbers.
const GpuEvents::OldSpecifications* GpuEvents::old_of(const Sequence& sequence) const {
  if (const auto own = old_.find(sequence.id); own != old_.end()) return &own->second;
  return old_.size() == 1 ? &old_.begin()->second : nullptr;
}

void GpuEvents::take(std::uint32_t field, Bytes message, Sequence& sequence, std::int64_t ts,
                     std::uint32_t bytes, Outcome& outcome) {
  switch (field) {
    case packet_field::kGpuRenderStage:
      render_stage(message, sequence, ts, bytes, outcome);
      break;
    case packet_field::kGpuCounters:
      counter_event(message, sequence, ts, outcome);
      break;
    case packet_field::kGpuMemory:
      memory(message, ts, outcome);
      break;
    case packet_field::kGpuFrequency:
      frequency(message, ts, outcome);
      break;
    case packet_field::kGpuLog:
      log(message, sequence, ts, bytes, outcome);
      break;
    case packet_field::kVulkanApi:
      submission(message, sequence, ts, bytes, outcome);
      break;
    default:
      break;
  }
}

std::int32_t GpuEvents::keep(const Details& details, Sequence& sequence) {
  if (details.encoded().empty()) return kNone;
  if (sequence.epoch == kNoEpoch) sequence.epoch = arguments_.new_epoch();
  Interned& interned = arguments_.epoch(sequence.epoch);
  for (const std::int32_t code : details.codes()) {
    interned.annotation_strings[kOwnString + static_cast<std::uint64_t>(code)] = code;
  }
  const std::string& text = details.encoded();
  return arguments_.keep({Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())},
                         sequence.epoch);
}

void GpuEvents::render_stage(Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes,
                             Outcome& outcome) {
  const RenderStage stage = read_stage(message);
  if (stage.damaged) {
    outcome.damaged = true;
    return;
  }
  if (stage.duration && *stage.duration > static_cast<std::uint64_t>(kLargestTime - ts)) {
    outcome.no_time = true;
    return;
  }
  const OldSpecifications* const old = old_of(sequence);
  const auto specification = [&](const std::optional<std::uint64_t>& iid, std::uint64_t position,
                                 const std::vector<GpuSpecification>* list) -> GpuSpecification {
    if (iid) {
      const auto found = sequence.gpu.specifications.find(*iid);
      if (found != sequence.gpu.specifications.end()) return found->second;
    } else if (list != nullptr && position < list->size()) {
      return (*list)[position];
    }
    ++outcome.missing_names;
    return {};
  };
  GpuSpecification queue = specification(stage.queue_iid, stage.queue, old ? &old->queues : nullptr);
  const std::uint64_t queue_number = stage.queue_iid.value_or(stage.queue);
  if (queue.name == kNone) queue.name = strings_.code("GPU queue " + std::to_string(queue_number));

  Details details;
  std::int64_t pid = old != nullptr ? old->pid : -1;
  if (stage.context) {
    details.number("context_id", *stage.context);
    if (const auto found = sequence.gpu.contexts.find(*stage.context); found != sequence.gpu.contexts.end()) {
      pid = found->second.pid;
      if (const char* const api = one_of(kApis, found->second.api); *api != '\0') details.text("api", api);
    }
  }
  const ComputeKernel* kernel = nullptr;
  if (stage.kernel_iid) {
    const auto found = sequence.gpu.kernels.find(*stage.kernel_iid);
    if (found != sequence.gpu.kernels.end()) {
      kernel = &found->second;
    } else {
      ++outcome.missing_names;
    }
  }

  Mark mark;
  mark.ts = ts;
  mark.packet_bytes = bytes;
  mark.type = stage.duration ? Mark::Type::kComplete : Mark::Type::kInstant;
  mark.dur = stage.duration ? static_cast<std::int64_t>(*stage.duration) : 0;
  mark.category = strings_.code("gpu_render_stage");
  // the most exact name that there is: the event's own, the kernel's, the stage's
  if (stage.name_iid) {
    if (sequence.epoch != kNoEpoch)
      mark.name = found_in(arguments_.epoch(sequence.epoch).names, *stage.name_iid);
    if (mark.name == kNone) ++outcome.missing_names;
  } else if (stage.has_name) {
    mark.name = strings_.code(stage.name);
  }
  if (mark.name == kNone && kernel != nullptr) {
    mark.name = kernel->demangled != kNone ? kernel->demangled : kernel->name;
  }
  const bool says_stage = stage.stage_iid || mark.name == kNone || old != nullptr;
  if (says_stage) {
    const GpuSpecification of_stage =
        specification(stage.stage_iid, stage.stage, old ? &old->stages : nullptr);
    if (mark.name == kNone) {
      mark.name = of_stage.name != kNone
                      ? of_stage.name
                      : strings_.code("GPU stage " + std::to_string(stage.stage_iid.value_or(stage.stage)));
    }
    details.known("stage", of_stage.name);
    details.known("description", of_stage.description);
    if (stage.stage_iid) details.text("render_stage_category", one_of(kStageCategories, of_stage.category));
  }

  details.number("hw_queue_id", queue_number);
  details.known("hw_queue_description", queue.description);
  if (stage.logical_queue) details.number("logical_queue_id", *stage.logical_queue);
  if (stage.event) details.number("event_id", *stage.event);
  if (stage.submission) details.number("submission_id", *stage.submission);
  const auto object = [&](const char* name, const std::optional<std::uint64_t>& handle, std::int64_t type) {
    if (!handle) return;
    details.number(name, *handle);
    if (const auto found = object_names_.find({type, *handle}); found != object_names_.end()) {
      details.known(std::string(name) + "_name", found->second);
    }
  };
  object("render_target", stage.render_target, kVkFramebuffer);
  object("render_pass", stage.render_pass, kVkRenderPass);
  object("command_buffer", stage.command_buffer, kVkCommandBuffer);
  if (stage.render_pass_instance) details.number("render_pass_instance_id", *stage.render_pass_instance);

  const auto attribute = [&](Bytes encoded) {
    std::int32_t named = kNone;
    std::string_view name;
    Fields fields(encoded);
    while (fields.next()) {
      if (fields.number() == 1) named = found_in(sequence.gpu.argument_names, fields.value());
      if (fields.number() == 2) name = fields.text();
    }
    if (named != kNone) name = strings_.text(named);
    if (name.empty() || name.size() > 64) return;
    Fields values(encoded);
    while (values.next()) {
      switch (values.number()) {
        case 3:
          details.integer(name, values.signed_value());
          break;
        case 4:
          details.number(name, values.value());
          break;
        case 5:
          details.real(name, values.real());
          break;
        case 6:
          details.known(name, strings_.code(values.text()));
          break;
        case 7:
          if (sequence.epoch != kNoEpoch) {
            details.known(name,
                          found_in(arguments_.epoch(sequence.epoch).annotation_strings, values.value()));
          }
          break;
        default:
          break;
      }
    }
  };
  if (kernel != nullptr) {
    details.known("kernel_name", kernel->name);
    details.known("arch", kernel->arch);
    std::size_t count = 0;
    for (const Bytes encoded : kernel->attributes) {
      if (count++ < kMostAttributes) attribute(encoded);
    }
  }
  if (stage.has_launch) {
    Fields fields(stage.launch);
    while (fields.next()) {
      if (fields.number() == 1 || fields.number() == 2) {
        const Dimensions size = read_dimensions(fields.bytes());
        details.numbers(fields.number() == 1 ? "grid" : "block", {size.x, size.y, size.z});
      } else if (fields.number() == 3) {
        attribute(fields.bytes());
      }
    }
  }
  for (const Bytes encoded : stage.extra) {
    std::string_view name;
    std::string_view value;
    Fields fields(encoded);
    while (fields.next()) {
      if (fields.number() == 1) name = fields.text();
      if (fields.number() == 2) value = fields.text();
    }
    if (!name.empty()) details.text(name, value);
  }

  mark.track = tracks_.of_queue(stage.gpu, pid, queue_number, stage.queue_iid.has_value(), queue.name);
  mark.arguments = keep(details, sequence);
  Work work;
  work.event = stage.event;
  work.sequence = sequence.id;
  work.submission = stage.submission;
  work.pid = pid;
  work.waits = stage.waits;
  mark.work = static_cast<std::int32_t>(marks_.work.size());
  marks_.work.push_back(std::move(work));
  marks_.marks.push_back(mark);
}

void GpuEvents::add_counter(std::int32_t track, std::int64_t ts, double value) {
  counters_.track.push_back(track);
  counters_.ts.push_back(ts);
  counters_.value.push_back(value);
}

void GpuEvents::counter_event(Bytes message, const Sequence& sequence, std::int64_t ts, Outcome& outcome) {
  std::optional<std::uint64_t> descriptor;
  std::optional<std::int32_t> gpu;
  Fields said(message);
  while (said.next()) {
    if (said.number() == 3) gpu = static_cast<std::int32_t>(said.value());
    if (said.number() == 4) descriptor = said.value();
  }
  if (said.damaged()) {
    outcome.damaged = true;
    return;
  }
  const auto find = [](const IdMap<GpuCounterSpec>& table, std::uint64_t id) {
    const auto found = table.find(id);
    return found == table.end() ? nullptr : &found->second;
  };
  const auto look_up = [&](std::uint64_t id) -> const GpuCounterSpec* {
    if (descriptor) {
      const auto table = sequence.gpu.counters.find(*descriptor);
      return table == sequence.gpu.counters.end() ? nullptr : find(table->second, id);
    }
    if (const auto own = counter_specs_.find(sequence.id); own != counter_specs_.end()) {
      if (const GpuCounterSpec* const spec = find(own->second, id)) return spec;
    }
    return find(any_counter_specs_, id);
  };
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() != 2) continue;
    std::uint64_t id = 0;
    std::optional<double> value;
    Fields entry(fields.bytes());
    while (entry.next()) {
      if (entry.number() == 1) id = entry.value();
      if (entry.number() == 2) value = static_cast<double>(entry.signed_value());
      if (entry.number() == 3) value = entry.real();
    }
    outcome.damaged |= entry.damaged();
    if (entry.damaged() || !value) continue;
    GpuCounterSpec spec;
    if (const GpuCounterSpec* const known = look_up(id)) spec = *known;
    if (spec.name == kNone) {
      ++outcome.missing_names;
      spec.name = strings_.code("GPU counter " + std::to_string(id));
    }
    // an interned descriptor's GPU goes before the event's
    const std::optional<std::int32_t> device = descriptor && spec.gpu ? spec.gpu : gpu ? gpu : spec.gpu;
    const std::int32_t track = tracks_.of_gpu_counter(device.value_or(-1), -1, spec.name, spec.unit);
    tracks_[track].description = spec.description;
    add_counter(track, ts, *value);
  }
}

void GpuEvents::memory(Bytes message, std::int64_t ts, Outcome& outcome) {
  std::int32_t gpu = -1;
  std::int64_t pid = -1;
  std::uint64_t size = 0;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) gpu = static_cast<std::int32_t>(fields.value());
    if (fields.number() == 2) pid = static_cast<std::int32_t>(fields.value());
    if (fields.number() == 3) size = fields.value();
  }
  outcome.damaged |= fields.damaged();
  if (fields.damaged()) return;
  // without a process, or with process 0, it is the sum over all
  if (pid == 0) pid = -1;
  const std::int32_t track =
      tracks_.of_gpu_counter(gpu, pid, strings_.code("GPU memory"), strings_.code("bytes"));
  add_counter(track, ts, static_cast<double>(size));
}

void GpuEvents::frequency(Bytes message, std::int64_t ts, Outcome& outcome) {
  std::int32_t gpu = -1;
  std::uint64_t frequency = 0;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) gpu = static_cast<std::int32_t>(fields.value());
    if (fields.number() == 2) frequency = fields.value();
  }
  outcome.damaged |= fields.damaged();
  if (fields.damaged()) return;
  const std::int32_t track =
      tracks_.of_gpu_counter(gpu, -1, strings_.code("GPU frequency"), strings_.code("kHz"));
  add_counter(track, ts, static_cast<double>(frequency));
}

void GpuEvents::log(Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes,
                    Outcome& outcome) {
  Mark mark;
  Details details;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) details.text("severity", one_of(kSeverities, fields.value()));
    if (fields.number() == 2) details.text("tag", fields.text());
    if (fields.number() == 3) mark.name = strings_.code(fields.text());
  }
  outcome.damaged |= fields.damaged();
  if (fields.damaged()) return;
  mark.ts = ts;
  mark.packet_bytes = bytes;
  mark.type = Mark::Type::kInstant;
  mark.category = strings_.code("gpu_log");
  mark.track = tracks_.of_log(sequence.id, strings_.code("GPU log"));
  mark.arguments = keep(details, sequence);
  marks_.marks.push_back(mark);
}

void GpuEvents::submission(Bytes message, Sequence& sequence, std::int64_t ts, std::uint32_t bytes,
                           Outcome& outcome) {
  Fields events(message);
  while (events.next()) {
    if (events.number() != 2) continue;
    std::optional<std::uint64_t> duration;
    std::int64_t pid = -1;
    std::int64_t tid = -1;
    Work work;
    Details details;
    Fields fields(events.bytes());
    while (fields.next()) {
      switch (fields.number()) {
        case 1:
          duration = fields.value();
          break;
        case 2:
          pid = static_cast<std::int32_t>(fields.value());
          break;
        case 3:
          tid = static_cast<std::int32_t>(fields.value());
          break;
        case 4:
          details.number("vk_queue", fields.value());
          break;
        case 6:
          work.submission = fields.value();
          details.number("submission_id", fields.value());
          break;
        default:
          break;
      }
    }
    if (fields.damaged()) {
      outcome.damaged = true;
      continue;
    }
    if (duration && *duration > static_cast<std::uint64_t>(kLargestTime - ts)) {
      outcome.no_time = true;
      continue;
    }
    Mark mark;
    mark.ts = ts;
    mark.packet_bytes = bytes;
    mark.type = duration ? Mark::Type::kComplete : Mark::Type::kInstant;
    mark.dur = duration ? static_cast<std::int64_t>(*duration) : 0;
    mark.name = strings_.code("vkQueueSubmit");
    mark.category = strings_.code("vulkan_api");
    mark.track = tracks_.of_thread(pid, tid);
    mark.arguments = keep(details, sequence);
    work.sequence = sequence.id;
    work.pid = pid;
    mark.work = static_cast<std::int32_t>(marks_.work.size());
    marks_.work.push_back(std::move(work));
    marks_.marks.push_back(mark);
  }
  outcome.damaged |= events.damaged();
}

void link_work(const Marks& marks, const RowOfMark& row_of_mark, Slices& slices) {
  if (marks.work.empty()) return;
  Spans& spans = slices.spans;
  struct Owner {
    std::uint32_t sequence = 0;
    bool shared = false;
    std::vector<std::int64_t> rows;
  };
  IdMap<Owner> owners;
  // calls that submit, by process and submission id
  std::map<std::pair<std::int64_t, std::uint64_t>, std::vector<std::int64_t>> submissions;
  const auto each = [&](auto&& use) {
    for (std::size_t i = 0; i < marks.marks.size(); ++i) {
      const Mark& mark = marks.marks[i];
      if (mark.work == kNone || row_of_mark[i] < 0) continue;
      use(mark, marks.work[static_cast<std::size_t>(mark.work)], row_of_mark[i]);
    }
  };
  const auto is_work = [](const Mark& mark, const Work& work) {
    return work.event.has_value() && mark.type == Mark::Type::kComplete;
  };
  each([&](const Mark& mark, const Work& work, std::int64_t row) {
    if (is_work(mark, work)) {
      Owner& owner = owners[*work.event];
      owner.shared |= !owner.rows.empty() && owner.sequence != work.sequence;
      owner.sequence = work.sequence;
      owner.rows.push_back(row);
    } else if (work.submission && !work.event && mark.type == Mark::Type::kComplete) {
      submissions[{work.pid, *work.submission}].push_back(row);
    }
  });
  const auto flow = [&](std::int64_t source, std::int64_t target, std::uint64_t id) {
    if (source == target) return;
    slices.flows.source.push_back(source);
    slices.flows.target.push_back(target);
    slices.flows.id.push_back(static_cast<std::int64_t>(id));
  };
  const auto owner_of = [&](std::uint64_t id) -> const Owner* {
    const auto found = owners.find(id);
    return found == owners.end() || found->second.shared ? nullptr : &found->second;
  };
  const auto correlation = [&](std::int64_t row) -> std::int64_t& {
    return spans.correlation[static_cast<std::size_t>(row)];
  };
  // Every row gets at most so many flows as the file has ids, whatever ids are given twice.
  std::size_t left = 4 * (marks.marks.size() + marks.work.size()) + 1024;
  for (const Work& work : marks.work) left += work.submits.size() + work.waits.size();
  each([&](const Mark& mark, const Work& work, std::int64_t row) {
    const bool call = mark.type != Mark::Type::kInstant && !work.event;
    for (const std::uint64_t id : work.submits) {
      const Owner* const owner = owner_of(id);
      if (owner == nullptr) continue;
      for (const std::int64_t done : owner->rows) {
        if (left == 0) return;
        --left;
        flow(row, done, id);
        if (!call || correlation(done) != -1) continue;
        if (correlation(row) == -1) correlation(row) = static_cast<std::int64_t>(id);
        correlation(done) = correlation(row);
      }
    }
    for (const std::uint64_t id : work.waits) {
      const Owner* const owner = owner_of(id);
      if (owner == nullptr) continue;
      for (const std::int64_t done : owner->rows) {
        if (left == 0) return;
        --left;
        flow(done, row, id);
      }
    }
    if (is_work(mark, work) && work.submission && work.submits.empty()) {
      const auto calls = submissions.find({work.pid, *work.submission});
      // a submission id says whose work it is only where one call has it
      if (calls == submissions.end() || calls->second.size() != 1) return;
      const std::int64_t from = calls->second.front();
      flow(from, row, *work.submission);
      if (correlation(row) == -1 && correlation(from) == -1) {
        correlation(from) = static_cast<std::int64_t>(*work.submission);
      }
      if (correlation(row) == -1) correlation(row) = correlation(from);
    }
  });
}

}  // namespace torchtrt_viz::perfetto
