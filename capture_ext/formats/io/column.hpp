// A growing array of plain values whose memory can be handed over as it is.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace torchtrt_viz {

// std::vector copies and touches everything again when it grows; realloc moves the pages of large blocks
// instead, which matters when a trace fills a dozen columns of tens of megabytes each.
template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);
  struct Free {
    void operator()(T* data) const noexcept { std::free(data); }
  };

 public:
  using Storage = std::unique_ptr<T[], Free>;

  Column() = default;
  Column(Column&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Column& operator=(Column&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  void push(T value) {
    if (size_ == capacity_) [[unlikely]] {
      reserve(capacity_ < kFirst ? kFirst : capacity_ * 2);
    }
    data_[size_++] = value;
  }

  void resize(std::size_t size) {  // new values are not initialised
    if (size > capacity_) reserve(size);
    size_ = size;
  }

  void assign(std::size_t size, T value) {
    resize(size);
    for (std::size_t i = 0; i < size; ++i) data_[i] = value;
  }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const T> view() const { return {data_.get(), size_}; }
  [[nodiscard]] std::span<T> view() { return {data_.get(), size_}; }

  void clear() { *this = Column(); }

  // Gives the memory away, cut to what is used.
  Storage release() {
    if (size_ != 0 && size_ != capacity_) {
      // Shrinking in place cannot fail in a way that matters: the old block stays valid.
      if (void* less = std::realloc(data_.get(), size_ * sizeof(T))) {
        (void)data_.release();
        data_.reset(static_cast<T*>(less));
      }
    }
    capacity_ = size_ = 0;
    return std::move(data_);
  }

 private:
  static constexpr std::size_t kFirst = 1024;

  void reserve(std::size_t capacity) {
    if (capacity > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_alloc();
    void* more = std::realloc(data_.get(), capacity * sizeof(T));
    if (more == nullptr) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(static_cast<T*>(more));
    capacity_ = capacity;
  }

  Storage data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace torchtrt_viz
