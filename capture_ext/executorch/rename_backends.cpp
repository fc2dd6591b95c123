#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include "executorch/proxy_delegate.hpp"

namespace torchtrt_viz::et {
namespace {

// The few steps through a flatbuffer that lead to the delegates' ids. Places are offsets into the file; what
// would lie outside is nothing.
class Buffer {
 public:
  explicit Buffer(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::optional<std::uint64_t> u32(std::uint64_t at) const { return read<std::uint32_t>(at); }

  // The table, vector or string that the reference at `at` points to.
  std::optional<std::uint64_t> target(std::uint64_t at) const {
    const auto offset = u32(at);
    if (!offset || *offset == 0) return std::nullopt;
    return inside(at + *offset, 4);
  }

  // Where field `slot` of a table is, nothing when the table has none.
  std::optional<std::uint64_t> field(std::uint64_t table, std::uint64_t slot) const {
    const auto back = read<std::int32_t>(table);
    if (!back) return std::nullopt;
    const auto vtable = static_cast<std::uint64_t>(static_cast<std::int64_t>(table) - *back);
    const auto size = read<std::uint16_t>(vtable);
    const auto entry = 4 + 2 * slot;
    if (!size || *size < entry + 2) return std::nullopt;
    const auto offset = read<std::uint16_t>(vtable + entry);
    if (!offset || *offset == 0) return std::nullopt;
    return inside(table + *offset, 4);
  }

  // The elements of a vector of references: first place and count.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> vector(std::uint64_t at) const {
    const auto count = u32(at);
    if (!count || !inside(at + 4, 4 * *count)) return std::nullopt;
    return std::pair{at + 4, *count};
  }

  std::optional<std::string> text(std::uint64_t at) const {
    const auto size = u32(at);
    if (!size || !inside(at + 4, *size)) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(bytes_.data()) + at + 4, *size);
  }

 private:
  std::optional<std::uint64_t> inside(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return std::nullopt;
    return at;
  }
  template <typename T>
  std::optional<T> read(std::uint64_t at) const {
    if (!inside(at, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  std::span<const std::byte> bytes_;
};

// Of executorch's schema, program.fbs.
constexpr std::uint64_t kExecutionPlan = 1;  // of Program
constexpr std::uint64_t kDelegates = 7;      // of ExecutionPlan
constexpr std::uint64_t kId = 0;             // of BackendDelegate

Error damaged(const char* what) {
  return Error(Code::invalid_program, std::string("the program is damaged: ") + what);
}

// Places of the ids of all delegates.
std::vector<std::uint64_t> find_ids(const Buffer& buffer) {
  std::vector<std::uint64_t> out;
  const auto root = buffer.target(0);
  const auto plans_field = root ? buffer.field(*root, kExecutionPlan) : std::nullopt;
  const auto plans_at = plans_field ? buffer.target(*plans_field) : std::nullopt;
  const auto plans = plans_at ? buffer.vector(*plans_at) : std::nullopt;
  if (!plans) throw damaged("its list of methods lies outside the file");
  for (std::uint64_t p = 0; p < plans->second; ++p) {
    const auto plan = buffer.target(plans->first + 4 * p);
    if (!plan) throw damaged("a method lies outside the file");
    const auto field = buffer.field(*plan, kDelegates);
    if (!field) continue;
    const auto delegates_at = buffer.target(*field);
    const auto delegates = delegates_at ? buffer.vector(*delegates_at) : std::nullopt;
    if (!delegates) throw damaged("a method's delegates lie outside the file");
    for (std::uint64_t d = 0; d < delegates->second; ++d) {
      const auto delegate = buffer.target(delegates->first + 4 * d);
      const auto id_field = delegate ? buffer.field(*delegate, kId) : std::nullopt;
      const auto id = id_field ? buffer.target(*id_field) : std::nullopt;
      if (!id || !buffer.text(*id)) throw damaged("a delegate's id lies outside the file");
      out.push_back(*id);
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::size_t> rename_backends(std::span<std::byte> program,
                                                   const std::map<std::string, std::string>& names) {
  constexpr std::size_t kIdentifierAt = 4;
  if (program.size() < 8 || std::memcmp(program.data() + kIdentifierAt, "ET", 2) != 0) {
    throw Error(Code::invalid_program, "this is not an ExecuTorch program: its identifier ETnn is missing");
  }
  for (const auto& [from, to] : names) {
    if (from.size() == to.size() && !from.empty()) continue;
    throw Error::refused("names", to, "'" + to + "' for '" + from + "'", "both ids have the same length");
  }
  const Buffer buffer(program);
  const auto ids = find_ids(buffer);
  std::map<std::string, std::size_t> renamed;
  std::set<std::uint64_t> done;  // delegates may share one string
  std::map<std::uint64_t, std::string> original;
  for (const auto at : ids) original.emplace(at, *buffer.text(at));
  for (const auto at : ids) {
    const auto found = names.find(original[at]);
    if (found == names.end()) continue;
    renamed[found->first] += 1;
    if (done.insert(at).second)
      std::memcpy(program.data() + at + 4, found->second.data(), found->second.size());
  }
  return renamed;
}

}  // namespace torchtrt_viz::et
