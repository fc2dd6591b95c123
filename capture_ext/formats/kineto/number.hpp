// Numbers as trace-event files write them, read from their text.
//
// Times are decimal microseconds. A double holds a present-day time since the epoch only to 0.25 us, so they
// are read as fixed point: exact to the nanosecond, further digits rounded half to even.
#pragma once

#include <cstdint>
#include <string_view>

namespace torchtrt_viz::kineto {

enum class NumberState : std::uint8_t { absent, valid, invalid };

// All functions take the text of one JSON value that starts at `p`, a string that holds a number included.
// The text is followed by at least one byte that cannot belong to a number.

// Microseconds as nanoseconds. `null` is absent; what is no number, or beyond the clock, is invalid.
NumberState read_time(const char* p, std::int64_t& ns);

// An integer of the range of int64; false for anything else.
bool read_integer(const char* p, std::int64_t& value);

// An integer written "0x...", as some producers write ids.
bool read_hexadecimal(std::string_view text, std::int64_t& value);

// Any number, NaN and infinities in every spelling that printf has.
bool read_real(std::string_view text, double& value);

// Whether `c` ends a scalar.
inline bool is_delimiter(char c) {
  switch (c) {
    case ',':
    case '}':
    case ']':
    case '"':
    case ' ':
    case '\n':
    case '\r':
    case '\t':
    case '\0':
    case ':':
      return true;
    default:
      return false;
  }
}

}  // namespace torchtrt_viz::kineto
