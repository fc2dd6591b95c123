// An ETDump as columns: every event of every run, in the file's order.
//
// Format: executorch/devtools/etdump/etdump_schema_flatcc.fbs, file identifier "ED00", with or without the
// 32-bit size prefix that ETDumpGen writes; several size-prefixed dumps may follow one another in a file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/etdump/flatbuffer.hpp"

namespace torchtrt_viz::etdump {

// What an event stands for, told by its exact name.
enum class Role : std::uint8_t {
  kMethod,        // Method::execute
  kLoad,          // Method::init, Program::load_method
  kOperatorCall,  // OPERATOR_CALL: an instruction that calls a kernel
  kDelegateCall,  // DELEGATE_CALL: an instruction that calls a delegate
  kControl,       // JF_CALL, MOVE_CALL, FREE_CALL: the other instructions
  kKernel,        // native_call_*: the kernel itself
  kRuntime,       // anything else that the runtime logs
  kDelegate,      // torchtrt.delegate: the delegate's own view of its whole call
  kPhase,         // torchtrt.*: a part of that call
  kEnqueue,  // torchtrt.enqueue_host: the part in which the engine's work is submitted or, on the host, done
  kLayer,    // anything else that a delegate logs
};

constexpr std::int32_t kNone = -1;

// One row per profile event. Names are rows of Dump::strings, -1 where the field is absent.
struct Events {
  std::vector<std::int32_t> run;
  std::vector<std::int32_t> chain;
  std::vector<std::int32_t> instruction;
  std::vector<std::int32_t> name;
  std::vector<std::int32_t> delegate_name;
  std::vector<std::int32_t> delegate_id;
  std::vector<std::uint8_t> role;
  std::vector<std::uint64_t> start;  // ticks
  std::vector<std::uint64_t> end;
  std::vector<std::uint32_t> metadata_offset;  // in the file; the length is 0 where there is none
  std::vector<std::uint32_t> metadata_length;
};

struct Runs {
  std::vector<std::int32_t> name;
  std::vector<std::int32_t> bundled_input;
  std::vector<std::int64_t> first;       // first row in Events
  std::vector<std::int64_t> count;       // rows in Events
  std::vector<std::uint64_t> signature;  // equal for runs with the same sequence of events (times apart)
  std::vector<std::int32_t> segment;     // which of the dumps in the file
};

struct Allocators {
  std::vector<std::int32_t> run;
  std::vector<std::int32_t> name;
};

// `after` is the number of profile events that precede the event in its run: it has no time of its own.
struct Allocations {
  std::vector<std::int32_t> run;
  std::vector<std::int64_t> after;
  std::vector<std::int32_t> allocator;
  std::vector<std::uint64_t> size;
};

struct Debugs {
  std::vector<std::int32_t> run;
  std::vector<std::int64_t> after;
  std::vector<std::int64_t> chain;
  std::vector<std::int32_t> instruction;
  std::vector<std::int32_t> name;
  std::vector<std::int32_t> delegate_name;
  std::vector<std::int32_t> delegate_id;
  std::vector<std::int8_t> type;    // ValueType of the schema, -1 absent
  std::vector<std::int8_t> output;  // whether it is an output of the method, -1 not said
  std::vector<std::int64_t> integer;
  std::vector<double> real;
  std::vector<std::int64_t> tensor_first;  // row in Tensors
  std::vector<std::int64_t> tensor_count;
};

struct Tensors {
  std::vector<std::int8_t> scalar_type;
  std::vector<std::int64_t> offset;  // in the debug buffer, bytes
  std::vector<std::int64_t> size_first;
  std::vector<std::int64_t> size_count;
  std::vector<std::int64_t> stride_first;
  std::vector<std::int64_t> stride_count;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

struct Dump {
  std::uint32_t version = 0;
  Events events;
  Runs runs;
  Allocators allocators;
  Allocations allocations;
  Debugs debugs;
  Tensors tensors;
  std::vector<std::string_view> strings;  // views of the file's bytes

  // Nothing could be read at all; `offset` is in the file.
  flatbuffer::Damage fatal;

  // What was left out: the first places, and how many in all.
  std::vector<flatbuffer::Damage> damages;
  std::uint64_t damage_count = 0;

  bool size_prefixed = false;
  std::int32_t segments = 0;
  std::uint64_t claimed_bytes = 0;    // what the last size prefix asks for, 0 without a prefix
  std::uint64_t trailing_offset = 0;  // bytes behind the last dump that are not another one
  std::uint64_t trailing_bytes = 0;
};

// Whether these are the first bytes of an ETDump.
bool recognise(std::span<const std::uint8_t> head);

// Decode a whole file. Time and memory are proportional to its size, whatever it contains.
Dump decode(std::span<const std::uint8_t> file);

}  // namespace torchtrt_viz::etdump
