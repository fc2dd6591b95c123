// One argument of an event as text, without building the event.
#pragma once

#include <string>
#include <string_view>

namespace torchtrt_viz::kineto {

enum class Argument : unsigned char {
  found,    // `value` is its JSON text, without white space between tokens
  absent,   // the event is well formed as far as needed, and has no such argument
  unclear,  // the text is not plain JSON: whoever can mend it has to read the event
};

// Finds args.<key> in the text of an event. Of equal keys the last counts, as for Python's json module.
Argument find_argument(std::string_view event, std::string_view key, std::string& value);

}  // namespace torchtrt_viz::kineto
