#include "formats/kineto/top_level.hpp"

#include <algorithm>

#include "formats/kineto/text.hpp"

namespace torchtrt_viz::kineto {
namespace {

constexpr std::string_view kEvents = "traceEvents";
constexpr std::string_view kEventsKey = "\"traceEvents\"";
constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr std::size_t kLongestKey = 4096;
constexpr std::size_t kLongestSkippedKey = 128;
constexpr std::size_t kMostValues = 256;  // only a key that is repeated without end gives more

}  // namespace

// How much of the text inside a string can be passed over: up to a quote or backslash.
std::size_t TopLevel::passed_over(std::string_view text) const {
  if (keeps_ || escaped_ || (state_ != State::text && state_ != State::nested_text)) return 0;
  text = text.substr(0, text.find('"'));
  return std::min(text.find('\\'), text.size());
}

std::size_t TopLevel::take(std::string_view text, std::uint64_t offset) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    i += passed_over(text.substr(i));
    if (i == text.size()) break;
    step(text[i], offset + i);
    if (state_ == State::events) return i + 1;
  }
  return text.size();
}

void TopLevel::store(char c) {
  if (!keeps_) return;
  if (value_.size() >= kLongestValue) {
    keeps_ = false;
    value_.clear();
  } else {
    value_ += c;
  }
}

void TopLevel::value_ended(std::uint64_t end) {
  if (keeps_ && values.size() < kMostValues) values.emplace_back(key_, std::move(value_));
  if (!wanted_ && skipped.size() < kMostValues) {
    skipped.emplace_back(key_.substr(0, kLongestSkippedKey), end - value_at_);
  } else if (!wanted_) {
    ++more_skipped;
  }
  value_.clear();
  keeps_ = false;
  state_ = State::comma_or_end;
}

void TopLevel::lose(std::uint64_t at) {
  notes_.add(Note::damaged_header, at);
  value_.clear();
  keeps_ = false;
  matched_ = 0;
  state_ = State::lost;
}

void TopLevel::search(char c) {
  if (matched_ < kEventsKey.size()) {
    // The key's quote occurs only at its ends, so a mismatch can begin anew with this character.
    matched_ = c == kEventsKey[matched_] ? matched_ + 1 : (c == '"' ? 1 : 0);
  } else if (c == ':' && matched_ == kEventsKey.size()) {
    ++matched_;
  } else if (c == '[' && matched_ == kEventsKey.size() + 1) {
    matched_ = 0;
    saw_events_ = true;
    state_ = State::events;
  } else if (!is_space(c)) {
    matched_ = c == '"' ? 1 : 0;
  }
}

void TopLevel::begin_value(char c, std::uint64_t at) {
  if (key_ == kEvents) {
    if (c == '[') {
      if (saw_events_) notes_.add(Note::repeated_events_key, at);
      saw_events_ = true;
      state_ = State::events;
      return;
    }
  }
  value_at_ = at;
  wanted_ = keeps_ = kept_.contains(key_);
  store(c);
  if (c == '"') {
    state_ = State::text;
  } else if (c == '{' || c == '[') {
    depth_ = 1;
    state_ = State::nested;
  } else if (c == '}' || c == ']' || c == ',' || c == ':') {
    lose(at);
  } else {
    state_ = State::word;
  }
}

void TopLevel::step(char c, std::uint64_t at) {
  switch (state_) {
    case State::start:
      if (is_space(c)) return;
      if (mark_ < kMark.size() && at == mark_ && c == kMark[mark_]) {
        if (++mark_ == kMark.size()) notes_.add(Note::byte_order_mark, 0);
        return;
      }
      if (c == '[') {
        bare_list_ = saw_events_ = true;
        state_ = State::events;
      } else if (c == '{') {
        state_ = State::key_or_end;
      } else {
        not_json_ = true;
        state_ = State::done;
      }
      return;
    case State::key_or_end:
      if (is_space(c)) return;
      if (c == '"') {
        key_.clear();
        escaped_ = false;
        state_ = State::key;
      } else if (c == '}') {
        state_ = State::done;
      } else if (c == ',') {
        notes_.add(Note::damaged_header, at);
      } else {
        lose(at);
      }
      return;
    case State::key:
      if (c == '"' && !escaped_) {
        state_ = State::colon;
        return;
      }
      escaped_ = c == '\\' && !escaped_;
      if (key_.size() < kLongestKey) key_ += c;
      return;
    case State::colon:
      if (is_space(c)) return;
      if (c == ':') {
        state_ = State::value;
      } else {
        lose(at);
      }
      return;
    case State::value:
      if (!is_space(c)) {
        escaped_ = false;
        begin_value(c, at);
      }
      return;
    case State::text:
      store(c);
      if (c == '"' && !escaped_) {
        value_ended(at + 1);
      } else {
        escaped_ = c == '\\' && !escaped_;
      }
      return;
    case State::word:
      if (is_space(c) || c == ',' || c == '}') {
        value_ended(at);
        if (!is_space(c)) step(c, at);
      } else if (c == '"' || c == '{' || c == '[' || c == ':') {
        lose(at);
      } else {
        store(c);
      }
      return;
    case State::nested:
      store(c);
      if (c == '"') {
        escaped_ = false;
        state_ = State::nested_text;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if ((c == '}' || c == ']') && --depth_ == 0) {
        value_ended(at + 1);
      }
      return;
    case State::nested_text:
      store(c);
      if (c == '"' && !escaped_) {
        state_ = State::nested;
      } else {
        escaped_ = c == '\\' && !escaped_;
      }
      return;
    case State::comma_or_end:
      if (is_space(c)) return;
      if (c == ',') {
        state_ = State::key_or_end;
      } else if (c == '}') {
        state_ = State::done;
      } else {
        lose(at);
      }
      return;
    case State::done:
      if ((c == '{' || c == '[') && !not_json_ && !noted_trailing_) {
        notes_.add(Note::another_document, at);
        bare_list_ = false;
        state_ = State::start;
        step(c, at);
        return;
      }
      if (!is_space(c) && c != '\0' && !noted_trailing_ && !not_json_) {
        noted_trailing_ = true;
        notes_.add(Note::trailing_data, at);
      }
      return;
    case State::lost:
      search(c);
      return;
    case State::events:
      return;
  }
}

}  // namespace torchtrt_viz::kineto
