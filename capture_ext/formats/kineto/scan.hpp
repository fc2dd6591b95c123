// Where JSON values end, found without a parser: for text that a parser refuses.
#pragma once

#include <cstddef>

namespace torchtrt_viz::kineto {

enum class Scan : unsigned char {
  whole,       // the value ends at `end`
  incomplete,  // the text ends inside the value
  damaged,     // what stands at `end` cannot be there
};

struct Scanned {
  Scan state;
  const char* end;
};

// Scans the value at `p`, checking its grammar. Control characters and bytes that are not UTF-8 pass inside
// strings, any word passes as a scalar (NaN, inf, N/A). Neither recursion nor a limit of depth.
Scanned scan_value(const char* p, const char* end);

// The end of the events before the last whole-looking boundary between two events of a list in [p, end): a
// pointer to its comma, null when there is none. A guess: whoever uses it must check it.
const char* last_boundary(const char* p, const char* end);

// The comma of the first such boundary.
const char* next_boundary(const char* p, const char* end);

// The quote that ends the string whose text begins at `p`, `end` when it does not end.
const char* string_end(const char* p, const char* end);

}  // namespace torchtrt_viz::kineto
