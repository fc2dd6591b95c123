#include "formats/kineto/locate.hpp"

#include "formats/kineto/scan.hpp"
#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr int kBoundaries = 8;  // up to which a damaged event is tried to be read

}  // namespace

Located locate_event(const char* p, const char* end, bool last, Mender& mender, std::string_view& text) {
  const Scanned event = scan_value(p, end);
  if (event.state == Scan::whole) {
    text = {p, static_cast<std::size_t>(event.end - p)};
    return Located::found;
  }
  if (event.state == Scan::incomplete && !last) return Located::need_more;
  MendOptions options;
  options.trust_quotes = false;
  const char* limit = p;
  for (int i = 0; i < kBoundaries && limit != end; ++i) {
    const char* const boundary = next_boundary(i == 0 ? p : limit + 1, end);
    if (boundary == nullptr && !last) return Located::need_more;
    limit = boundary == nullptr ? end : boundary;
    const char* const behind = mender.mend(p, limit, options);
    // A string that runs over the boundary would take the next event with it.
    if (behind == nullptr && mender.ended_in_string) break;
    if (behind == nullptr || (limit != end && skip_space(behind, limit) != limit)) continue;
    text = mender.text();
    return Located::found;
  }
  return Located::lost;
}

std::string_view normalize_event(std::string_view text, std::size_t depth, Mender& mender) {
  const char* const end = text.data() + text.size();
  MendOptions options;
  options.known_words = true;
  options.depth = depth;
  if (mender.mend(text.data(), end, options) != nullptr) return mender.text();
  options.trust_quotes = false;
  if (mender.mend(text.data(), end, options) != nullptr) return mender.text();
  return {};
}

}  // namespace torchtrt_viz::kineto
