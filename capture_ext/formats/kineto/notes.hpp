// What was repaired, left out or could not be known: how often, and where first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace torchtrt_viz::kineto {

enum class Note : std::uint8_t {
  truncated,            // the file stops inside an event
  unclosed,             // the list of events, or the object around it, is not closed
  trailing_comma,       // commas without an event behind them
  missing_comma,        // no comma between two events
  damaged_event,        // an event was mended: quotes, brackets or commas
  lost_event,           // an event could not be mended and is left out
  not_an_event,         // an element of the list that is no object
  control_character,    // raw control characters inside strings
  invalid_utf8,         // bytes that are not UTF-8
  invalid_escape,       // names with unknown escapes
  lone_surrogate,       // names with half a surrogate pair
  byte_order_mark,      // the file begins with one
  repeated_events_key,  // traceEvents occurs more than once
  damaged_header,       // what stands outside the list of events is damaged
  trailing_data,        // something follows the end of the document
  another_document,     // a further JSON document in the same file
  unknown_phase,        // events of a phase that is not of this format, or is not kept
  missing_time,         // events without a usable time are left out
  missing_duration,     // complete events without a duration
  invalid_duration,     // complete events whose duration is negative or no number
  not_finished,         // events that the producer marks as not finished
  zero_time,            // complete events recorded at time 0 for no time, beside events of a real clock
  end_without_begin,    // ends that match no begin
  begin_without_end,    // begins that match no end
  counter_without_value,
  unclosed_call,  // calls whose recorded end is the recording's, not their own
  overlap,        // spans that overlap on one track
  count_
};

class Notes {
 public:
  struct Entry {
    std::uint64_t count = 0;
    std::uint64_t first = 0;  // byte offset of the first
  };

  void add(Note note, std::uint64_t at, std::uint64_t count = 1) {
    Entry& entry = entries_[static_cast<std::size_t>(note)];
    if (entry.count == 0 || at < entry.first) entry.first = at;
    entry.count += count;
  }
  [[nodiscard]] const Entry& operator[](Note note) const { return entries_[static_cast<std::size_t>(note)]; }

 private:
  std::array<Entry, static_cast<std::size_t>(Note::count_)> entries_{};
};

const char* note_code(Note note);

}  // namespace torchtrt_viz::kineto
