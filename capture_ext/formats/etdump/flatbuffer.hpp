// Bounds-checked access to a flatbuffer that comes from an untrusted file.
//
// Every position is checked before it is read; nothing is assumed about alignment, order or sharing of
// objects. A reader never follows more than one reference per call, so that the depth of a walk is the
// depth of the schema and a reference that leads backwards cannot make it endless.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace torchtrt_viz::flatbuffer {

// What is wrong with a place in the file.
enum class Fault : std::uint8_t {
  kNone,
  kReference,  // an offset leads outside the file
  kVtable,     // a table's layout record is outside the file or contradicts itself
  kField,      // a field lies outside its table
  kVector,     // a vector claims more elements than the file has bytes for
  kText,       // a string claims more bytes than the file has
  kOverlap,    // objects share bytes so heavily that they cannot have been written
  kEmpty,      // a required object is absent
};

struct Damage {
  Fault fault = Fault::kNone;
  std::uint64_t offset = 0;  // in the bytes that the reader was given
};

struct Table {
  std::uint64_t at = 0;
  std::uint64_t vtable = 0;
  std::uint16_t fields = 0;  // bytes of the vtable
  std::uint16_t size = 0;    // bytes of the table's inline part
};

struct Vector {
  std::uint64_t first = 0;  // position of the first element; 0 with count 0 when the vector is absent
  std::uint64_t count = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint64_t size() const { return bytes_.size(); }

  // What made the last call return false.
  const Damage& damage() const { return damage_; }

  bool fail(Fault fault, std::uint64_t offset) {
    damage_ = {fault, offset};
    return false;
  }

  bool holds(std::uint64_t at, std::uint64_t size) const {
    return at <= bytes_.size() && size <= bytes_.size() - at;
  }

  // Only for a place that `holds` or another check has vouched for.
  template <typename T>
  T load(std::uint64_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  std::string_view view(const Vector& bytes) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + bytes.first, bytes.count};
  }

  // The table at a position.
  bool table(std::uint64_t at, Table& out) {
    if (!holds(at, 4)) return fail(Fault::kReference, at);
    const auto vtable = static_cast<std::int64_t>(at) - load<std::int32_t>(at);
    if (vtable < 0 || !holds(static_cast<std::uint64_t>(vtable), 4)) return fail(Fault::kVtable, at);
    out.at = at;
    out.vtable = static_cast<std::uint64_t>(vtable);
    out.fields = load<std::uint16_t>(out.vtable);
    out.size = load<std::uint16_t>(out.vtable + 2);
    if (out.fields < 4 || out.fields % 2 != 0 || out.size < 4 || !holds(out.vtable, out.fields) ||
        !holds(at, out.size)) {
      return fail(Fault::kVtable, at);
    }
    return true;
  }

  // The position of a field of `width` bytes; 0 when the table does not have it.
  bool field(const Table& table, unsigned slot, unsigned width, std::uint64_t& at) {
    at = 0;
    const unsigned entry = 4 + 2 * slot;
    if (entry + 2 > table.fields) return true;
    const auto offset = load<std::uint16_t>(table.vtable + entry);
    if (offset == 0) return true;
    if (offset < 4 || offset + width > table.size) return fail(Fault::kField, table.at);
    at = table.at + offset;
    return true;
  }

  template <typename T>
  bool scalar(const Table& table, unsigned slot, T fallback, T& out) {
    std::uint64_t at = 0;
    if (!field(table, slot, sizeof(T), at)) return false;
    out = at == 0 ? fallback : load<T>(at);
    return true;
  }

  // Where the reference at a position leads.
  bool follow(std::uint64_t at, std::uint64_t& target) {
    if (!holds(at, 4)) return fail(Fault::kReference, at);
    target = at + load<std::uint32_t>(at);
    if (target == at || !holds(target, 4)) return fail(Fault::kReference, at);
    return true;
  }

  // The table that a field refers to; `found` is false when the field is absent.
  bool child(const Table& table, unsigned slot, Table& out, bool& found) {
    std::uint64_t at = 0;
    std::uint64_t target = 0;
    found = false;
    if (!field(table, slot, 4, at)) return false;
    if (at == 0) return true;
    if (!follow(at, target) || !this->table(target, out)) return false;
    found = true;
    return true;
  }

  // The vector that a field refers to, with elements of `width` bytes.
  bool vector(const Table& table, unsigned slot, unsigned width, Vector& out) {
    return elements(table, slot, width, Fault::kVector, out);
  }

  // The bytes of a string; `found` is false when the field is absent.
  bool text(const Table& table, unsigned slot, Vector& out, bool& found) {
    if (!elements(table, slot, 1, Fault::kText, out)) return false;
    found = out.first != 0;
    return true;
  }

  // Like `vector`, but a vector that the file's end cuts short keeps the elements that are there.
  bool vector_or_rest(const Table& table, unsigned slot, unsigned width, Vector& out, bool& cut) {
    cut = false;
    if (vector(table, slot, width, out)) return true;
    if (damage_.fault != Fault::kVector) return false;
    out.first = damage_.offset + 4;
    out.count = (bytes_.size() - out.first) / width;
    cut = true;
    return true;
  }

 private:
  bool elements(const Table& table, unsigned slot, unsigned width, Fault too_long, Vector& out) {
    std::uint64_t at = 0;
    std::uint64_t target = 0;
    out = {};
    if (!field(table, slot, 4, at)) return false;
    if (at == 0) return true;
    if (!follow(at, target)) return false;
    const std::uint64_t count = load<std::uint32_t>(target);
    if (!holds(target + 4, count * width)) return fail(too_long, target);
    out = {target + 4, count};
    return true;
  }

  std::span<const std::uint8_t> bytes_;
  Damage damage_;
};

}  // namespace torchtrt_viz::flatbuffer
