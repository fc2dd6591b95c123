// Events out of JSON text, with simdjson: for decoder.cpp alone.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/kineto/collector.hpp"
#include "formats/kineto/event.hpp"
#include "formats/kineto/tables.hpp"

namespace torchtrt_viz::kineto {

class Extractor {
 public:
  Extractor(Strings& strings, Collector& collector) : strings_(strings), collector_(collector) {}

  enum class End : std::uint8_t {
    text,    // every event was taken; the list goes on behind the text
    closed,  // the list's "]" stands at `at`
    failed,  // the element at `at` is damaged; all before it were taken
    // All events before `at` were taken; there something else stands than a comma or the list's end.
    failed_behind,
  };
  struct Outcome {
    End end;
    std::size_t at;
  };

  // Takes the events of `text`, whose first byte is "[" and whose last is "]", both put there by the caller
  // around a piece of the list. `offset` is the place of text[0] in the file. Of both functions: `capacity`
  // bytes belong to the text, padding included; the byte behind `size` is changed meanwhile and restored.
  Outcome take_list(char* text, std::size_t size, std::size_t capacity, std::uint64_t offset);

  // Takes the one object that `text` consists of; false when it is damaged. `at` is its place in the file.
  bool take_object(char* text, std::size_t size, std::size_t capacity, std::uint64_t at);

 private:
  using Value = simdjson::ondemand::value;

  bool read(simdjson::ondemand::object& object);
  bool read_id2(Value& value);
  bool read_args(Value& value);
  void read_arg(const char* key, std::string_view token);

  Strings& strings_;
  Collector& collector_;
  simdjson::ondemand::parser parser_;
  Event event_;
  Series series_;
};

}  // namespace torchtrt_viz::kineto
