// Trace-event JSON as columns, in one pass over a stream of any length.
//
// Format: "Trace Event Format" (Chrome) as libkineto and its relatives write it. The text goes through a
// window of about a megabyte: caches stay warm, memory does not grow with the file, and simdjson's limit of
// 4 GiB a document does not apply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "columns/nesting.hpp"
#include "formats/kineto/collector.hpp"
#include "formats/kineto/mend.hpp"
#include "formats/kineto/notes.hpp"
#include "formats/kineto/python_calls.hpp"
#include "formats/kineto/tables.hpp"
#include "formats/kineto/top_level.hpp"
#include "formats/kineto/vocabulary.hpp"

namespace torchtrt_viz::kineto {

class Extractor;  // keeps the JSON parser out of what includes this

struct Options {
  Vocabulary vocabulary;
  std::unordered_set<std::string> kept_keys;  // top-level keys whose values are wanted
  std::size_t window = 1U << 20;              // bytes read at once
  std::size_t longest_event = 64U << 20;      // a longer one is taken for damage
};

class Decoder {
 public:
  explicit Decoder(Options options);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Takes the next piece of the uncompressed file.
  void feed(std::string_view block);

  // Reads the next `most` bytes from a file descriptor; returns how many came, 0 at the end of the file.
  std::size_t read(int descriptor, std::size_t most);

  // Ends the file: after it the tables are final. Call once.
  void finish();

  [[nodiscard]] std::uint64_t bytes() const { return base_ + fill_; }
  [[nodiscard]] const TopLevel& top() const { return top_; }
  [[nodiscard]] const Notes& notes() const { return notes_; }
  [[nodiscard]] const Strings& strings() const { return strings_; }
  [[nodiscard]] const Lanes& lanes() const { return collector_.lanes; }
  Collector& tables() { return collector_; }
  Flows& flows() { return flows_; }
  Nesting& nesting() { return nesting_; }
  // Rows of calls whose recorded end is not their own.
  [[nodiscard]] const std::vector<std::int64_t>& unclosed_calls() const { return call_ends_.unclosed; }
  Column<std::int32_t>& iteration() { return iteration_; }

 private:
  enum class Step : unsigned char { go_on, need_more };

  [[nodiscard]] char* text() { return buffer_.data() + 1; }
  [[nodiscard]] std::size_t room() const { return limit_ - fill_; }
  void refuse_after_end() const;
  void process(bool last);
  Step take_events(bool last);
  Step take_carefully(std::size_t from, bool behind, bool last);
  // Takes a damaged event and moves `p` behind it; false when more text is needed.
  bool take_damaged(char*& p, char* end, bool last);
  const char* take_other(const char* p, const char* end);
  bool take_mended(const char* p, std::uint64_t at);
  bool take_text_of_mender(std::uint64_t at);
  void close_events(std::size_t at);
  void consume(std::size_t size);
  void grow();
  [[nodiscard]] std::uint64_t offset_of(const char* p) {
    return base_ + static_cast<std::uint64_t>(p - text());
  }

  Options options_;
  Notes notes_;
  Strings strings_;
  TopLevel top_;
  Collector collector_;
  std::unique_ptr<Extractor> extractor_;
  Mender mender_;
  std::vector<char> buffer_;  // one byte for "[", the text, padding
  std::size_t limit_;         // bytes of text that are read before they are worked through
  std::size_t fill_ = 0;      // bytes of text
  std::uint64_t base_ = 0;    // place of the text in the file
  bool finished_ = false;
  bool after_event_ = false;  // the text begins behind an event, before a comma or the end of the list
  Flows flows_;
  Nesting nesting_;
  CallEnds call_ends_;
  Column<std::int32_t> iteration_;
};

}  // namespace torchtrt_viz::kineto
