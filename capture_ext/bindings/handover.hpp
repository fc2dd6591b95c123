// Hand-over of whole column buffers between C++ and numpy, without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/io/column.hpp"

namespace torchtrt_viz::bindings {

namespace nb = nanobind;

template <typename T>
using Column = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <typename T>
using ConstColumn = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The array owns the vector from here on.
template <typename T>
Column<T> give(std::vector<T>&& values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  const std::size_t size = owner->size();
  nb::capsule capsule(owner.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  (void)owner.release();
  return Column<T>(data, {size}, capsule);
}

template <typename T>
Column<T> give(torchtrt_viz::Column<T>&& column) {
  if (column.empty()) return give(std::vector<T>());
  const std::size_t size = column.size();
  auto storage = column.release();
  T* const data = storage.get();
  nb::capsule capsule(data, [](void* p) noexcept { std::free(p); });
  (void)storage.release();
  return Column<T>(data, {size}, capsule);
}

template <typename T>
std::span<const T> view(const ConstColumn<T>& column) {
  return {column.data(), column.shape(0)};
}

// Names come from untrusted files: bytes that are not UTF-8 become U+FFFD.
inline nb::object text(const std::string& bytes) {
  PyObject* object = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (object == nullptr) throw nb::python_error();
  return nb::steal<nb::object>(object);
}

inline nb::list texts(const std::vector<std::string>& values) {
  nb::list out;
  for (const auto& value : values) out.append(text(value));
  return out;
}

}  // namespace torchtrt_viz::bindings
