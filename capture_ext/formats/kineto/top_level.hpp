// What stands around the list of events: finds the list, and keeps the values of known keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/kineto/notes.hpp"

namespace torchtrt_viz::kineto {

// Takes the text piece by piece, in pieces of any size. Values of keys that nobody asked for are passed over
// and never stored: public traces carry whole environments there.
class TopLevel {
 public:
  static constexpr std::size_t kLongestValue = 4U << 20;

  TopLevel(std::unordered_set<std::string> kept, Notes& notes) : kept_(std::move(kept)), notes_(notes) {}

  // Takes text up to the "[" of the list of events, that included, and returns how much it took: all of it
  // when the list does not begin here. `offset` is the place of the text in the file.
  std::size_t take(std::string_view text, std::uint64_t offset);

  // Whether the text that was taken last ends with the "[" of the list of events.
  [[nodiscard]] bool at_events() const { return state_ == State::events; }
  void events_closed() { state_ = bare_list_ ? State::done : State::comma_or_end; }

  [[nodiscard]] bool saw_events() const { return saw_events_; }
  [[nodiscard]] bool saw_anything() const { return state_ != State::start; }
  [[nodiscard]] bool bare_list() const { return bare_list_; }
  [[nodiscard]] bool complete() const { return state_ == State::done; }
  [[nodiscard]] bool is_json() const { return state_ != State::start && !not_json_; }

  // (key, JSON text) of the keys asked for, in the file's order.
  std::vector<std::pair<std::string, std::string>> values;
  // (key, bytes of its value) of the keys that were passed over, in the file's order; `more_skipped` counts
  // those beyond the first few.
  std::vector<std::pair<std::string, std::uint64_t>> skipped;
  std::uint64_t more_skipped = 0;

 private:
  enum class State : unsigned char {
    start,  // before the opening bracket
    key_or_end,
    key,  // inside a key
    colon,
    value,        // before a value
    text,         // inside a string
    word,         // inside a number or word
    nested,       // inside a list or object
    nested_text,  // inside a string inside one
    comma_or_end,
    events,
    done,
    lost,  // the grammar was lost: looks for the key of the events
  };

  void step(char c, std::uint64_t at);
  [[nodiscard]] std::size_t passed_over(std::string_view text) const;
  void begin_value(char c, std::uint64_t at);
  void value_ended(std::uint64_t end);
  void store(char c);
  void lose(std::uint64_t at);
  void search(char c);

  std::unordered_set<std::string> kept_;
  Notes& notes_;
  State state_ = State::start;
  std::string key_;
  std::string value_;
  std::uint64_t value_at_ = 0;
  bool wanted_ = false;  // the current key is one of those asked for
  bool keeps_ = false;   // and its value is not too long
  bool escaped_ = false;
  std::uint64_t depth_ = 0;
  bool bare_list_ = false;
  bool saw_events_ = false;
  bool not_json_ = false;
  bool noted_trailing_ = false;
  std::size_t matched_ = 0;  // of the key of the events, in state `lost`
  unsigned mark_ = 0;        // of the byte order mark
};

}  // namespace torchtrt_viz::kineto
