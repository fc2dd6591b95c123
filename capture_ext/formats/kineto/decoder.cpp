#include "formats/kineto/decoder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "formats/kineto/extract.hpp"
#include "formats/kineto/scan.hpp"
#include "formats/kineto/steps.hpp"
#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr std::size_t kPadding = simdjson::SIMDJSON_PADDING + 8;
constexpr int kTries = 8;  // boundaries up to which a damaged event is tried to be mended

}  // namespace

Decoder::Decoder(Options options)
    : options_(std::move(options)),
      top_(options_.kept_keys, notes_),
      collector_(options_.vocabulary, strings_, notes_),
      extractor_(std::make_unique<Extractor>(strings_, collector_)),
      buffer_(options_.window + kPadding + 1),
      limit_(options_.window) {}

Decoder::~Decoder() = default;

void Decoder::refuse_after_end() const {
  if (finished_) throw Error(Code::invalid_state, "the file was ended already: use a new decoder");
}

void Decoder::feed(std::string_view block) {
  refuse_after_end();
  while (!block.empty()) {
    const std::size_t n = std::min(room(), block.size());
    std::memcpy(text() + fill_, block.data(), n);
    fill_ += n;
    block.remove_prefix(n);
    if (room() == 0) process(false);
  }
}

std::size_t Decoder::read(int descriptor, std::size_t most) {
  refuse_after_end();
  std::size_t total = 0;
  while (total < most) {
    const ssize_t n = ::read(descriptor, text() + fill_, std::min(room(), most - total));
    if (n < 0) {
      if (errno == EINTR) continue;
      throw Error(Code::io_error, std::string("reading the trace: ") + std::strerror(errno));
    }
    if (n == 0) break;
    fill_ += static_cast<std::size_t>(n);
    total += static_cast<std::size_t>(n);
    if (room() == 0) process(false);
  }
  return total;
}

void Decoder::finish() {
  refuse_after_end();
  finished_ = true;
  process(true);
  if (top_.saw_events() && !top_.complete() && notes_[Note::truncated].count == 0) {
    notes_.add(Note::unclosed, bytes());
  }
  buffer_ = {};
  collector_.finish();
  const Spans& spans = collector_.spans;
  flows_ = collector_.flows.connect(spans, collector_.lanes);
  collector_.flows = {};
  call_ends_ = proven_ends(spans, collector_.python_calls);
  nesting_ = nest(spans.lane.view(), spans.start.view(),
                  call_ends_.dur.empty() ? spans.dur.view() : std::span<const std::int64_t>(call_ends_.dur));
  apply_stated_callers(spans, collector_.python_calls, call_ends_, nesting_);
  if (!call_ends_.unclosed.empty()) {
    const auto first = static_cast<std::size_t>(call_ends_.unclosed.front());
    notes_.add(Note::unclosed_call, static_cast<std::uint64_t>(spans.at[first]), call_ends_.unclosed.size());
  }
  if (nesting_.overlaps != 0) notes_.add(Note::overlap, 0, static_cast<std::uint64_t>(nesting_.overlaps));
  iteration_ = number_steps(spans, collector_.lanes.all(), collector_.ranks_of_lanes(), strings_.names,
                            options_.vocabulary.step_kind);
}

// Works through the buffer until more text is needed.
void Decoder::process(bool last) {
  for (;;) {
    if (!top_.at_events()) {
      consume(top_.take({text(), fill_}, base_));
      if (!top_.at_events()) return;
      after_event_ = false;
    }
    if (fill_ == 0) return;
    if (take_events(last) == Step::need_more) {
      if (!last && room() == 0) grow();
      return;
    }
  }
}

// The fast way: everything up to the last boundary between two events goes through the parser at once.
Decoder::Step Decoder::take_events(bool last) {
  char* const begin = text();
  const char* const cut = last ? begin + fill_ : last_boundary(begin, begin + fill_);
  if (cut == nullptr || after_event_) return take_carefully(0, after_event_, last);
  const auto size = static_cast<std::size_t>(cut - begin);
  const char kept_front = begin[-1];
  const char kept_back = begin[size];
  begin[-1] = '[';
  begin[size] = ']';
  const auto outcome = extractor_->take_list(begin - 1, size + 2, buffer_.size(),
                                             base_ - 1);  // wraps at 0: places are relative
  begin[-1] = kept_front;
  begin[size] = kept_back;
  switch (outcome.end) {
    case Extractor::End::text:
      if (last) {
        consume(fill_);
        return Step::need_more;
      }
      consume(size + 1);
      return Step::need_more;
    case Extractor::End::closed:
      close_events(outcome.at - 1);
      return Step::go_on;
    case Extractor::End::failed:
      if (outcome.at <= fill_ && begin[outcome.at - 1] == ']')
        notes_.add(Note::trailing_comma, base_ + outcome.at - 1);
      return take_carefully(outcome.at - 1, false, last);
    case Extractor::End::failed_behind:
      break;
  }
  return take_carefully(outcome.at - 1, true, last);
}

// The careful way: event by event from `from`, mending what the parser refuses. `behind` tells that an event
// has just ended there.
Decoder::Step Decoder::take_carefully(std::size_t from, bool behind, bool last) {
  char* const begin = text();
  char* const end = begin + fill_;
  char* p = begin + from;
  const auto wait = [&](const char* at) {
    after_event_ = behind;
    consume(static_cast<std::size_t>(at - begin));
    return Step::need_more;
  };
  for (;;) {
    p = skip_space(p, end);
    if (p == end) return wait(p);
    if (*p == ']') {
      close_events(static_cast<std::size_t>(p - begin));
      return Step::go_on;
    }
    if (*p == ',') {
      char* const next = skip_space(p + 1, end);
      if (next == end && !last) return wait(p);
      // The unclosed form ends with a comma by nature; in front of "]" or another comma it is one too many.
      if (!behind || (next != end && (*next == ']' || *next == ','))) {
        notes_.add(Note::trailing_comma, offset_of(p));
      }
      behind = false;
      p = next;
      continue;
    }
    const Scanned scanned = scan_value(p, end);
    const auto length = static_cast<std::size_t>(scanned.end - p);
    const bool too_long = length > options_.longest_event;
    if (scanned.state == Scan::incomplete && !too_long) {
      if (!last) return wait(p);
      if (*p != '{' || next_boundary(p, end) == nullptr) {
        notes_.add(Note::truncated, offset_of(p));
        consume(fill_);
        return Step::need_more;
      }
    }
    const std::uint64_t at = offset_of(p);
    if (*p == '{' && scanned.state == Scan::whole) {
      if (!extractor_->take_object(p, length, static_cast<std::size_t>(buffer_.data() + buffer_.size() - p),
                                   at) &&
          !take_mended(p, at)) {
        notes_.add(Note::lost_event, at);
      }
      p += length;
    } else if (*p == '{') {
      if (!take_damaged(p, end, last)) return wait(p);
    } else {
      p = begin + (take_other(p, end) - begin);
    }
    if (behind) notes_.add(Note::missing_comma, at);
    behind = true;
  }
}

// An event that is whole but holds what the parser refuses.
bool Decoder::take_mended(const char* p, std::uint64_t at) {
  if (mender_.mend(p, text() + fill_, {}) == nullptr || !take_text_of_mender(at)) return false;
  if (mender_.structure != 0) notes_.add(Note::damaged_event, at);
  return true;
}

bool Decoder::take_text_of_mender(std::uint64_t at) {
  std::string& mended = mender_.text();
  const std::size_t size = mended.size();
  mended.resize(size + kPadding, ' ');
  if (!extractor_->take_object(mended.data(), size, mended.size(), at)) return false;
  if (mender_.control_characters != 0) notes_.add(Note::control_character, at, mender_.control_characters);
  if (mender_.invalid_bytes != 0) notes_.add(Note::invalid_utf8, at, mender_.invalid_bytes);
  return true;
}

bool Decoder::take_damaged(char*& p, char* end, bool last) {
  char* const begin = p;
  const std::uint64_t at = offset_of(p);
  MendOptions options;
  options.trust_quotes = false;
  const char* first = nullptr;  // where the next event seems to begin
  const char* limit = p;
  for (int i = 0; i < kTries && limit != end; ++i) {
    const char* const boundary = next_boundary(i == 0 ? p : limit + 1, end);
    if (boundary == nullptr && !last && static_cast<std::size_t>(end - p) < options_.longest_event)
      return false;
    limit = boundary == nullptr ? end : boundary;
    if (first == nullptr) first = limit;
    const char* const behind = mender_.mend(p, limit, options);
    // A string that runs over the boundary would take the next event with it.
    if (behind == nullptr && mender_.ended_in_string) break;
    if (behind == nullptr || (limit != end && skip_space(behind, limit) != limit)) continue;
    if (!take_text_of_mender(at)) continue;
    notes_.add(Note::damaged_event, at);
    p = begin + (behind - begin);
    return true;
  }
  p = begin + (first - begin);
  // Damage deep inside arguments, which are not looked at here, need not cost the event.
  const auto capacity = static_cast<std::size_t>(buffer_.data() + buffer_.size() - begin);
  if (first != end && extractor_->take_object(begin, static_cast<std::size_t>(first - begin), capacity, at)) {
    notes_.add(Note::damaged_event, at);
  } else {
    notes_.add(last && first == end ? Note::truncated : Note::lost_event, at);
  }
  return true;
}

// Something in the list that is no event; returns where to go on.
const char* Decoder::take_other(const char* p, const char* end) {
  notes_.add(Note::not_an_event, offset_of(p));
  const Scanned scanned = scan_value(p, end);
  if (scanned.state == Scan::whole) return scanned.end;
  // Garbage: the next event that can be told.
  if (const char* const boundary = next_boundary(p, end)) return boundary;
  const auto* const brace =
      static_cast<const char*>(std::memchr(p + 1, '{', static_cast<std::size_t>(end - p - 1)));
  return brace == nullptr ? end : brace;
}

void Decoder::close_events(std::size_t at) {
  consume(at + 1);
  after_event_ = false;
  top_.events_closed();
}

void Decoder::consume(std::size_t size) {
  fill_ -= size;
  base_ += size;
  std::memmove(text(), text() + size, fill_);
  if (fill_ < options_.window / 2) limit_ = options_.window;
}

void Decoder::grow() {
  limit_ *= 2;
  if (buffer_.size() < limit_ + kPadding + 1) buffer_.resize(limit_ + kPadding + 1);
}

}  // namespace torchtrt_viz::kineto
