// The text of single events, for their arguments on demand.
#pragma once

#include <string_view>

#include "formats/kineto/mend.hpp"

namespace torchtrt_viz::kineto {

enum class Located : unsigned char {
  found,      // `text` is the event's, valid or not
  need_more,  // it may go on behind the text at hand
  lost,       // it cannot be told where it ends
};

// Finds the text of the event at `p` in a piece of the file that ends at `end`; `last` tells that the file
// ends there too. A damaged event is mended, its text is then `mender`'s.
Located locate_event(const char* p, const char* end, bool last, Mender& mender, std::string_view& text);

// What Python's json module can read of an event whose text is not quite JSON: words it does not know become
// strings, members of members that nest deeper than `depth` become their text. Empty when it cannot be told.
std::string_view normalize_event(std::string_view text, std::size_t depth, Mender& mender);

}  // namespace torchtrt_viz::kineto
