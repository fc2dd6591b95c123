#include "formats/perfetto/strings.hpp"

#include <cstring>
#include <random>

namespace torchtrt_viz::perfetto {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ULL) * (b ^ 0xD6E8FEB86659FD93ULL);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::size_t Strings::Hash::operator()(std::string_view text) const noexcept {
  std::uint64_t state = seed ^ text.size();
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    state = mix(state, word);
  }
  std::uint64_t rest = 0;
  if (at < text.size()) std::memcpy(&rest, text.data() + at, text.size() - at);
  return static_cast<std::size_t>(mix(state, rest ^ seed));
}

Strings::Strings() : codes_(64, Hash{random_seed()}) {}

std::int32_t Strings::code(std::string_view text) {
  if (const auto found = codes_.find(text); found != codes_.end()) return found->second;
  const auto code = static_cast<std::int32_t>(values_.size());
  codes_.emplace(values_.emplace_back(text), code);
  return code;
}

}  // namespace torchtrt_viz::perfetto
