// Arguments of events: kept as the bytes of the file, and turned into JSON for the events that are asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/perfetto/sequence.hpp"
#include "formats/perfetto/strings.hpp"
#include "formats/perfetto/wire.hpp"

namespace torchtrt_viz::perfetto {

class Arguments {
 public:
  // Table of interned strings for a new epoch of a sequence; returns its number.
  std::uint32_t new_epoch();
  Interned& epoch(std::uint32_t number) { return *epochs_[number]; }

  // Keeps the encoded fields of one event; returns the number of the segment, kNone for no fields.
  std::int32_t keep(const std::vector<Bytes>& fields, std::uint32_t epoch);

  // JSON object of up to two segments (of a slice's begin and of its end); "{}" for kNone.
  // `strings` is the table that the decoder filled. Text is copied as it is in the file, which may be no
  // UTF-8.
  [[nodiscard]] std::string json(std::int32_t first, std::int32_t second, const Strings& strings) const;

 private:
  struct Segment {
    std::uint64_t offset;
    std::uint32_t size;
    std::uint32_t epoch;
  };

  std::vector<std::unique_ptr<Interned>> epochs_;
  std::vector<std::uint8_t> arena_;
  std::vector<Segment> segments_;
};

}  // namespace torchtrt_viz::perfetto
