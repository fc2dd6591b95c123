#include "formats/etdump/decode.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "formats/etdump/dictionary.hpp"

static_assert(std::endian::native == std::endian::little, "flatbuffers are little-endian");

namespace torchtrt_viz::etdump {
namespace {

using flatbuffer::Damage;
using flatbuffer::Fault;
using flatbuffer::Reader;
using flatbuffer::Table;
using flatbuffer::Vector;

constexpr std::string_view kIdentifier = "ED00";
constexpr std::size_t kHeader = 8;              // root offset and identifier
constexpr std::size_t kKeptDamages = 16;        // the rest is only counted
constexpr std::uint64_t kSmallestObject = 8;    // a reference and the table that it leads to
constexpr std::uint64_t kTextReuse = 16;        // a writer may share long names between events
constexpr std::uint64_t kFreeText = 1U << 20U;  // so that a small file may share them at will

// Slots of the schema's tables, in the order in which it declares the fields.
namespace slot {
enum Dump : unsigned { kVersion, kRunData };
enum Run : unsigned { kRunName, kBundledInput, kAllocators, kEvents };
enum Event : unsigned { kProfile, kAllocation, kDebug };
enum Profile : unsigned {
  kName,
  kChain,
  kInstruction,
  kDelegateInt,
  kDelegateStr,
  kMetadata,
  kStart,
  kEnd,
};
enum Allocation : unsigned { kAllocator, kSize };
enum Debug : unsigned { kDebugChain, kDebugInstruction, kEntry, kDebugInt, kDebugStr, kDebugName };
enum Value : unsigned { kType, kTensor, kTensorList, kInt, kFloat, kDouble, kBool, kOutput };
enum Tensor : unsigned { kScalarType, kSizes, kStrides, kOffset };
}  // namespace slot

enum class ValueType : std::int8_t { kNull, kInt, kBool, kFloat, kDouble, kTensor, kTensorList, kString };

bool identified(std::span<const std::uint8_t> bytes, std::size_t at) {
  return bytes.size() >= at + kIdentifier.size() &&
         std::equal(kIdentifier.begin(), kIdentifier.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

Role runtime_role(std::string_view name) {
  if (name == "OPERATOR_CALL") return Role::kOperatorCall;
  if (name == "DELEGATE_CALL") return Role::kDelegateCall;
  if (name == "Method::execute") return Role::kMethod;
  if (name == "Method::init" || name == "Program::load_method") return Role::kLoad;
  if (name == "JF_CALL" || name == "MOVE_CALL" || name == "FREE_CALL") return Role::kControl;
  if (name.starts_with("native_call_")) return Role::kKernel;
  return Role::kRuntime;
}

Role delegate_role(std::string_view name) {
  if (name == "torchtrt.delegate") return Role::kDelegate;
  if (name == "torchtrt.enqueue_host") return Role::kEnqueue;
  if (name.starts_with("torchtrt.")) return Role::kPhase;
  return Role::kLayer;
}

std::uint64_t fold(std::uint64_t state, std::uint64_t value) {
  state ^= value + 0x9e3779b97f4a7c15ULL + (state << 6U) + (state >> 2U);
  return state * 0xff51afd7ed558ccdULL;
}

template <typename T>
std::uint64_t bits(T value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

// Reads one dump after another into the same columns.
class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> file) : file_(file) {
    text_budget_ = file.size() * kTextReuse + kFreeText;
    object_budget_ = file.size() / kSmallestObject;
  }

  Dump run() {
    std::size_t at = 0;
    dump_.size_prefixed = !identified(file_, 4) && identified(file_, kHeader);
    if (!dump_.size_prefixed) {
      if (!identified(file_, 4)) {
        dump_.fatal = {Fault::kEmpty, 0};
      } else {
        segment(file_, 0, false);
      }
      return finish();
    }
    while (dump_.fatal.fault == Fault::kNone && at < file_.size()) {
      if (!identified(file_.subspan(at), kHeader)) {
        dump_.trailing_offset = at;
        dump_.trailing_bytes = file_.size() - at;
        break;
      }
      const std::size_t begin = at + 4;
      const std::uint64_t claimed = Reader(file_).load<std::uint32_t>(at);
      const std::uint64_t there = std::min<std::uint64_t>(claimed, file_.size() - begin);
      dump_.claimed_bytes = begin + claimed;
      segment(file_.subspan(begin, there), begin, there < claimed);
      at = begin + std::max<std::uint64_t>(there, kHeader);
    }
    return finish();
  }

 private:
  Dump finish() {
    dump_.strings = names_.take();
    return std::move(dump_);
  }

  void damaged(const Damage& damage) {
    if (dump_.damages.size() < kKeptDamages) {
      dump_.damages.push_back({damage.fault, damage.offset + origin_});
    }
    ++dump_.damage_count;
  }

  void fatal(const Damage& damage) { dump_.fatal = {damage.fault, damage.offset + origin_}; }

  // Honest objects lie side by side: their number is bounded by the file's size. Objects that are reached
  // more than once can be more, and could multiply a small file into any amount of work.
  bool spend(Reader& in, std::uint64_t objects, std::uint64_t at) {
    if (objects > object_budget_) return in.fail(Fault::kOverlap, at);
    object_budget_ -= objects;
    return true;
  }

  bool name(Reader& in, const Table& table, unsigned slot, std::int32_t& code) {
    Vector bytes;
    bool found = false;
    code = kNone;
    if (!in.text(table, slot, bytes, found)) return false;
    if (!found) return true;
    if (bytes.count > text_budget_) return in.fail(Fault::kOverlap, bytes.first - 4);
    text_budget_ -= bytes.count;
    code = names_.add(in.view(bytes));
    return true;
  }

  void segment(std::span<const std::uint8_t> bytes, std::uint64_t origin, bool truncated) {
    Reader in(bytes);
    origin_ = origin;
    ++dump_.segments;
    std::uint64_t root_at = 0;
    Table root;
    Vector runs;
    bool cut = false;
    if (!in.follow(0, root_at) || !in.table(root_at, root) ||
        !in.scalar<std::uint32_t>(root, slot::kVersion, 0, dump_.version) ||
        !(truncated ? in.vector_or_rest(root, slot::kRunData, 4, runs, cut)
                    : in.vector(root, slot::kRunData, 4, runs)) ||
        !spend(in, runs.count, runs.first)) {
      fatal(in.damage());
      return;
    }
    if (cut) damaged(in.damage());
    for (std::uint64_t i = 0; i < runs.count; ++i) {
      std::uint64_t at = 0;
      Table run;
      if (!in.follow(runs.first + 4 * i, at) || !in.table(at, run) || !read_run(in, run, truncated)) {
        damaged(in.damage());
        if (in.damage().fault == Fault::kOverlap) {
          fatal(in.damage());
          return;
        }
      }
    }
  }

  bool read_run(Reader& in, const Table& table, bool truncated) {
    std::int32_t run_name = kNone;
    std::int32_t bundled = kNone;
    Vector allocators;
    Vector events;
    bool cut = false;
    if (!(truncated ? in.vector_or_rest(table, slot::kEvents, 4, events, cut)
                    : in.vector(table, slot::kEvents, 4, events)) ||
        !spend(in, events.count, events.first)) {
      return false;
    }
    if (cut) damaged(in.damage());
    if (!name(in, table, slot::kRunName, run_name) && !skip(in)) return false;
    if (!in.scalar<std::int32_t>(table, slot::kBundledInput, kNone, bundled)) damaged(in.damage());
    if (!in.vector(table, slot::kAllocators, 4, allocators) || !spend(in, allocators.count, table.at)) {
      allocators = {};
      if (!skip(in)) return false;
    }

    Runs& runs = dump_.runs;
    run_ = static_cast<std::int32_t>(runs.name.size());
    const std::size_t first = dump_.events.run.size();
    reserve(first + events.count);
    for (std::uint64_t i = 0; i < allocators.count; ++i) {
      std::int32_t allocator = kNone;
      std::uint64_t at = 0;
      Table entry;
      if ((!in.follow(allocators.first + 4 * i, at) || !in.table(at, entry) ||
           !name(in, entry, 0, allocator)) &&
          !skip(in)) {
        return false;
      }
      dump_.allocators.run.push_back(run_);
      dump_.allocators.name.push_back(allocator);
    }
    run_first_ = first;
    for (std::uint64_t i = 0; i < events.count; ++i) {
      std::uint64_t at = 0;
      Table event;
      if ((!in.follow(events.first + 4 * i, at) || !in.table(at, event) || !read_event(in, event)) &&
          !skip(in)) {
        return false;
      }
    }
    runs.name.push_back(run_name);
    runs.bundled_input.push_back(bundled);
    runs.first.push_back(static_cast<std::int64_t>(first));
    runs.count.push_back(static_cast<std::int64_t>(dump_.events.run.size() - first));
    runs.signature.push_back(signature(first, dump_.events.run.size()));
    runs.segment.push_back(dump_.segments - 1);
    return true;
  }

  // Go on behind a damaged object, unless the file is hostile.
  bool skip(const Reader& in) {
    if (in.damage().fault == Fault::kOverlap) return false;
    damaged(in.damage());
    return true;
  }

  void reserve(std::size_t rows) {
    Events& e = dump_.events;
    if (rows <= e.run.capacity()) return;
    // Runs come one after the other: grow geometrically, never by a run at a time.
    const std::size_t room = std::max(rows, e.run.capacity() * 2);
    for (auto* column : {&e.run, &e.chain, &e.instruction, &e.name, &e.delegate_name, &e.delegate_id}) {
      column->reserve(room);
    }
    e.role.reserve(room);
    for (auto* column : {&e.start, &e.end}) column->reserve(room);
    for (auto* column : {&e.metadata_offset, &e.metadata_length}) column->reserve(room);
  }

  bool read_event(Reader& in, const Table& event) {
    Table table;
    bool profile = false;
    bool allocation = false;
    bool debug = false;
    if (!in.child(event, slot::kProfile, table, profile)) return false;
    if (profile && !read_profile(in, table)) return false;
    if (!in.child(event, slot::kAllocation, table, allocation)) return false;
    if (allocation && !read_allocation(in, table)) return false;
    if (!in.child(event, slot::kDebug, table, debug)) return false;
    if (debug && !read_debug(in, table)) return false;
    return profile || allocation || debug || in.fail(Fault::kEmpty, event.at);
  }

  bool read_profile(Reader& in, const Table& table) {
    std::int32_t event_name = kNone;
    std::int32_t delegate_name = kNone;
    std::int32_t chain = 0;
    std::int32_t instruction = kNone;
    std::int32_t delegate_id = kNone;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    Vector metadata;
    if (!name(in, table, slot::kName, event_name) || !name(in, table, slot::kDelegateStr, delegate_name) ||
        !in.scalar<std::int32_t>(table, slot::kChain, 0, chain) ||
        !in.scalar<std::int32_t>(table, slot::kInstruction, kNone, instruction) ||
        !in.scalar<std::int32_t>(table, slot::kDelegateInt, kNone, delegate_id) ||
        !in.scalar<std::uint64_t>(table, slot::kStart, 0, start) ||
        !in.scalar<std::uint64_t>(table, slot::kEnd, 0, end) ||
        !in.vector(table, slot::kMetadata, 1, metadata)) {
      return false;
    }
    Events& e = dump_.events;
    e.run.push_back(run_);
    e.chain.push_back(chain);
    e.instruction.push_back(instruction);
    e.name.push_back(event_name);
    e.delegate_name.push_back(delegate_name);
    e.delegate_id.push_back(delegate_id);
    e.role.push_back(static_cast<std::uint8_t>(role(event_name, delegate_name, delegate_id)));
    e.start.push_back(start);
    e.end.push_back(end);
    e.metadata_offset.push_back(metadata.count == 0 ? 0
                                                    : static_cast<std::uint32_t>(origin_ + metadata.first));
    e.metadata_length.push_back(static_cast<std::uint32_t>(metadata.count));
    return true;
  }

  Role role(std::int32_t event_name, std::int32_t delegate_name, std::int32_t delegate_id) {
    if (delegate_name >= 0) {
      return remembered(delegate_roles_, delegate_name, delegate_role);
    }
    if (delegate_id != kNone) return Role::kLayer;
    if (event_name >= 0) return remembered(runtime_roles_, event_name, runtime_role);
    return Role::kRuntime;
  }

  // A name's role is told once, not once an event.
  Role remembered(std::vector<std::int8_t>& known, std::int32_t code, Role (*tell)(std::string_view)) {
    const auto i = static_cast<std::size_t>(code);
    if (i >= known.size()) known.resize(names_.values().size(), -1);
    if (known[i] < 0) known[i] = static_cast<std::int8_t>(tell(names_.values()[i]));
    return static_cast<Role>(known[i]);
  }

  std::int64_t after() const { return static_cast<std::int64_t>(dump_.events.run.size() - run_first_); }

  bool read_allocation(Reader& in, const Table& table) {
    std::int32_t allocator = 0;
    std::uint64_t size = 0;
    if (!in.scalar<std::int32_t>(table, slot::kAllocator, 0, allocator) ||
        !in.scalar<std::uint64_t>(table, slot::kSize, 0, size)) {
      return false;
    }
    Allocations& a = dump_.allocations;
    a.run.push_back(run_);
    a.after.push_back(after());
    a.allocator.push_back(allocator);
    a.size.push_back(size);
    return true;
  }

  bool read_debug(Reader& in, const Table& table) {
    std::uint64_t chain = 0;
    std::int32_t instruction = kNone;
    std::int32_t delegate_id = kNone;
    std::int32_t event_name = kNone;
    std::int32_t delegate_name = kNone;
    Table value;
    bool valued = false;
    if (!in.scalar<std::uint64_t>(table, slot::kDebugChain, 0, chain) ||
        !in.scalar<std::int32_t>(table, slot::kDebugInstruction, kNone, instruction) ||
        !in.scalar<std::int32_t>(table, slot::kDebugInt, kNone, delegate_id) ||
        !name(in, table, slot::kDebugStr, delegate_name) || !name(in, table, slot::kDebugName, event_name) ||
        !in.child(table, slot::kEntry, value, valued)) {
      return false;
    }
    Value read;
    const std::size_t tensors = dump_.tensors.offset.size();
    if (valued && !read_value(in, value, read)) {
      drop_tensors(tensors);
      return false;
    }
    Debugs& d = dump_.debugs;
    d.run.push_back(run_);
    d.after.push_back(after());
    d.chain.push_back(static_cast<std::int64_t>(chain));
    d.instruction.push_back(instruction);
    d.name.push_back(event_name);
    d.delegate_name.push_back(delegate_name);
    d.delegate_id.push_back(delegate_id);
    d.type.push_back(read.type);
    d.output.push_back(read.output);
    d.integer.push_back(read.integer);
    d.real.push_back(read.real);
    d.tensor_first.push_back(static_cast<std::int64_t>(tensors));
    d.tensor_count.push_back(static_cast<std::int64_t>(dump_.tensors.offset.size() - tensors));
    return true;
  }

  struct Value {
    std::int8_t type = kNone;
    std::int8_t output = kNone;
    std::int64_t integer = 0;
    double real = 0;
  };

  // A tensor whose event turns out to be damaged is unreachable; only its row has to go.
  void drop_tensors(std::size_t keep) {
    Tensors& t = dump_.tensors;
    t.scalar_type.resize(keep);
    for (auto* column : {&t.offset, &t.size_first, &t.size_count, &t.stride_first, &t.stride_count}) {
      column->resize(keep);
    }
  }

  bool read_value(Reader& in, const Table& table, Value& out) {
    Table inner;
    bool found = false;
    std::uint8_t flag = 0;
    if (!in.scalar<std::int8_t>(table, slot::kType, 0, out.type) ||
        !in.child(table, slot::kOutput, inner, found) ||
        (found && !in.scalar<std::uint8_t>(inner, 0, 0, flag))) {
      return false;
    }
    if (found) out.output = flag != 0 ? 1 : 0;
    switch (static_cast<ValueType>(out.type)) {
      case ValueType::kInt:
        return in.child(table, slot::kInt, inner, found) &&
               (!found || in.scalar<std::int64_t>(inner, 0, 0, out.integer));
      case ValueType::kBool:
        if (!in.child(table, slot::kBool, inner, found) ||
            (found && !in.scalar<std::uint8_t>(inner, 0, 0, flag))) {
          return false;
        }
        out.integer = found && flag != 0 ? 1 : 0;
        return true;
      case ValueType::kFloat: {
        float narrow = 0;
        if (!in.child(table, slot::kFloat, inner, found) ||
            (found && !in.scalar<float>(inner, 0, 0, narrow))) {
          return false;
        }
        out.real = static_cast<double>(narrow);
        return true;
      }
      case ValueType::kDouble:
        return in.child(table, slot::kDouble, inner, found) &&
               (!found || in.scalar<double>(inner, 0, 0, out.real));
      case ValueType::kTensor:
        return in.child(table, slot::kTensor, inner, found) && (!found || read_tensor(in, inner));
      case ValueType::kTensorList:
        return read_tensor_list(in, table);
      default:
        return true;
    }
  }

  bool read_tensor_list(Reader& in, const Table& table) {
    Table list;
    bool found = false;
    Vector tensors;
    if (!in.child(table, slot::kTensorList, list, found)) return false;
    if (!found) return true;
    if (!in.vector(list, 0, 4, tensors) || !spend(in, tensors.count, list.at)) return false;
    for (std::uint64_t i = 0; i < tensors.count; ++i) {
      std::uint64_t at = 0;
      Table tensor;
      if (!in.follow(tensors.first + 4 * i, at) || !in.table(at, tensor) || !read_tensor(in, tensor)) {
        return false;
      }
    }
    return true;
  }

  bool read_tensor(Reader& in, const Table& table) {
    std::int8_t scalar_type = 0;
    std::int64_t offset = kNone;
    Vector sizes;
    Vector strides;
    if (!in.scalar<std::int8_t>(table, slot::kScalarType, 0, scalar_type) ||
        !in.scalar<std::int64_t>(table, slot::kOffset, 0, offset) ||
        !in.vector(table, slot::kSizes, 8, sizes) || !spend(in, sizes.count, table.at) ||
        !in.vector(table, slot::kStrides, 8, strides) || !spend(in, strides.count, table.at)) {
      return false;
    }
    Tensors& t = dump_.tensors;
    t.scalar_type.push_back(scalar_type);
    t.offset.push_back(offset);
    t.size_first.push_back(static_cast<std::int64_t>(t.sizes.size()));
    t.size_count.push_back(static_cast<std::int64_t>(sizes.count));
    t.stride_first.push_back(static_cast<std::int64_t>(t.strides.size()));
    t.stride_count.push_back(static_cast<std::int64_t>(strides.count));
    for (std::uint64_t i = 0; i < sizes.count; ++i) {
      t.sizes.push_back(in.load<std::int64_t>(sizes.first + 8 * i));
    }
    for (std::uint64_t i = 0; i < strides.count; ++i) {
      t.strides.push_back(in.load<std::int64_t>(strides.first + 8 * i));
    }
    return true;
  }

  std::uint64_t signature(std::size_t first, std::size_t last) const {
    const Events& e = dump_.events;
    std::uint64_t state = 0;
    for (std::size_t i = first; i < last; ++i) {
      state = fold(state, bits(e.name[i]) << 32U ^ static_cast<std::uint32_t>(e.delegate_name[i]));
      state = fold(state, bits(e.instruction[i]) << 32U ^ static_cast<std::uint32_t>(e.chain[i]));
      state = fold(state, bits(e.delegate_id[i]));
    }
    return state;
  }

  std::span<const std::uint8_t> file_;
  Dump dump_;
  Dictionary names_;
  std::vector<std::int8_t> runtime_roles_;
  std::vector<std::int8_t> delegate_roles_;
  std::uint64_t origin_ = 0;
  std::uint64_t text_budget_ = 0;
  std::uint64_t object_budget_ = 0;
  std::size_t run_first_ = 0;
  std::int32_t run_ = 0;
};

}  // namespace

bool recognise(std::span<const std::uint8_t> head) {
  return identified(head, 4) || identified(head, kHeader);
}

Dump decode(std::span<const std::uint8_t> file) {
  // References are 32 bits wide, and so are the columns that hold positions.
  if (file.size() > std::numeric_limits<std::uint32_t>::max()) {
    Dump dump;
    dump.fatal = {Fault::kVector, std::numeric_limits<std::uint32_t>::max()};
    return dump;
  }
  return Decoder(file).run();
}

}  // namespace torchtrt_viz::etdump
