#include "formats/kineto/notes.hpp"

namespace torchtrt_viz::kineto {

const char* note_code(Note note) {
  switch (note) {
    case Note::truncated:
      return "truncated";
    case Note::unclosed:
      return "unclosed";
    case Note::trailing_comma:
      return "trailing_comma";
    case Note::missing_comma:
      return "missing_comma";
    case Note::damaged_event:
      return "damaged_event";
    case Note::lost_event:
      return "lost_event";
    case Note::not_an_event:
      return "not_an_event";
    case Note::control_character:
      return "control_character";
    case Note::invalid_utf8:
      return "invalid_utf8";
    case Note::invalid_escape:
      return "invalid_escape";
    case Note::lone_surrogate:
      return "lone_surrogate";
    case Note::byte_order_mark:
      return "byte_order_mark";
    case Note::repeated_events_key:
      return "repeated_events_key";
    case Note::damaged_header:
      return "damaged_header";
    case Note::trailing_data:
      return "trailing_data";
    case Note::another_document:
      return "another_document";
    case Note::unknown_phase:
      return "unknown_phase";
    case Note::missing_time:
      return "missing_time";
    case Note::missing_duration:
      return "missing_duration";
    case Note::invalid_duration:
      return "invalid_duration";
    case Note::not_finished:
      return "not_finished";
    case Note::zero_time:
      return "zero_time";
    case Note::end_without_begin:
      return "end_without_begin";
    case Note::begin_without_end:
      return "begin_without_end";
    case Note::counter_without_value:
      return "counter_without_value";
    case Note::unclosed_call:
      return "unclosed_call";
    case Note::overlap:
      return "overlap";
    case Note::count_:
      break;
  }
  return "";
}

}  // namespace torchtrt_viz::kineto
