#include "executorch/npy.hpp"

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>
#include <string_view>

#include "core/atomic_file.hpp"

namespace torchtrt_viz::et {
namespace {

struct Kind {
  DType dtype;
  std::string_view text;
};

constexpr Kind kKinds[] = {
    {DType::uint8, "|u1"},       {DType::int8, "|i1"},    {DType::int16, "<i2"},   {DType::int32, "<i4"},
    {DType::int64, "<i8"},       {DType::uint16, "<u2"},  {DType::uint32, "<u4"},  {DType::uint64, "<u8"},
    {DType::float16, "<f2"},     {DType::float32, "<f4"}, {DType::float64, "<f8"}, {DType::complex64, "<c8"},
    {DType::complex128, "<c16"}, {DType::boolean, "|b1"},
};

constexpr char kMagic[] = "\x93NUMPY";
constexpr std::size_t kMagicSize = 6;
constexpr std::size_t kAlignment = 64;

Error bad(const std::string& path, const std::string& what) {
  return Error(Code::invalid_argument, path + " is not a .npy file that can be used: " + what);
}

// The text after "'key':" in the header, a Python dict of which numpy writes three keys.
std::string_view value_of(std::string_view header, std::string_view key) {
  const auto at = header.find(key);
  if (at == std::string_view::npos) return {};
  auto rest = header.substr(at + key.size());
  const auto begin = rest.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
}

std::optional<Dims> parse_shape(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  text = text.substr(1, text.find(')') - 1);
  Dims out;
  while (!text.empty()) {
    const auto begin = text.find_first_not_of(" ,");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    std::int64_t size = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), size);
    if (result.ec != std::errc() || size < 0 || out.rank() == kMaxDims) return std::nullopt;
    out.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  }
  return out;
}

// Elements that fit into `bytes`, without the product wrapping around.
bool fits(const Dims& dims, std::size_t item, std::size_t bytes) {
  std::uint64_t elements = 1;
  for (const auto size : dims.sizes()) {
    if (size == 0) return true;
    if (elements > bytes / static_cast<std::uint64_t>(size)) return false;
    elements *= static_cast<std::uint64_t>(size);
  }
  return elements <= bytes / item;
}

std::vector<std::int64_t> dense_strides(const Dims& dims) {
  std::vector<std::int64_t> out(dims.rank());
  std::int64_t stride = 1;
  for (std::size_t i = dims.rank(); i-- > 0;) {
    out[i] = stride;
    stride *= dims[i];
  }
  return out;
}

}  // namespace

NpyArray read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Code::not_found, "cannot read " + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() < 12 || bytes.compare(0, kMagicSize, kMagic, kMagicSize) != 0)
    throw bad(path, "no NUMPY magic");
  const bool wide = bytes[6] != 1;  // format 1 has a header size of two bytes, later ones of four
  std::size_t header_size = 0;
  for (std::size_t i = 0; i < (wide ? 4 : 2); ++i) {
    header_size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  }
  const std::size_t header_at = wide ? 12 : 10;
  if (header_size > bytes.size() - header_at) throw bad(path, "its header is cut short");
  const std::string_view header(bytes.data() + header_at, header_size);
  const auto descr = value_of(header, "'descr':");
  const Kind* kind = nullptr;
  for (const auto& known : kKinds) {
    if (descr.size() > known.text.size() + 1 && descr.substr(1, known.text.size()) == known.text)
      kind = &known;
  }
  if (kind == nullptr) throw bad(path, "its type " + std::string(descr.substr(0, 12)) + " has no equivalent");
  const auto shape = parse_shape(value_of(header, "'shape':"));
  if (!shape) throw bad(path, "its shape cannot be read");
  if (!value_of(header, "'fortran_order':").starts_with("False") && shape->rank() > 1) {
    throw bad(path, "it is in Fortran order: save numpy.ascontiguousarray() of it");
  }
  const auto at = header_at + header_size;
  if (!fits(*shape, dtype_size(kind->dtype), bytes.size() - at)) throw bad(path, "its data are cut short");
  NpyArray out;
  auto& view = out.tensor.view;
  view.dtype = kind->dtype;
  view.sizes = *shape;
  out.tensor.strides = dense_strides(*shape);
  out.data.reset(new (std::nothrow) std::byte[view.nbytes() + 1]);
  if (!out.data) throw Error(Code::out_of_memory, "no memory for " + path);
  std::memcpy(out.data.get(), bytes.data() + at, view.nbytes());
  view.data = out.data.get();
  return out;
}

void write_npy(const std::string& path, const OutputTensor& tensor) {
  std::string_view descr = tensor.dtype == DType::bfloat16 ? "<u2" : "";
  for (const auto& kind : kKinds) {
    if (kind.dtype == tensor.dtype) descr = kind.text;
  }
  if (descr.empty()) {
    throw Error(Code::not_supported, path + ": numpy has no " + std::string(dtype_name(tensor.dtype)));
  }
  const Dims dims(tensor.sizes);
  if (dims.elements() > 1 && tensor.strides != dense_strides(dims)) {
    throw Error(Code::not_supported, path + ": the output is not in C order");
  }
  std::string header =
      "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + to_text(dims) + ", }";
  while ((10 + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string bytes(kMagic, kMagicSize);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xFFU);
  bytes += static_cast<char>(header.size() >> 8U);
  bytes += header;
  const auto size = static_cast<std::size_t>(dims.elements()) * dtype_size(tensor.dtype);
  bytes.append(reinterpret_cast<const char*>(tensor.data.get()), size);
  write_file(path, bytes);
}

}  // namespace torchtrt_viz::et
