#include "formats/sqlite/pages.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"

namespace torchtrt_viz::sqlite {

Storage::Storage(int descriptor) : size_(0), descriptor_(::dup(descriptor)) {
  struct stat status{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(Code::io_error, "the file cannot be read");
  }
  size_ = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
}

Storage::~Storage() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Bytes Storage::held(std::uint64_t offset, std::size_t size) const {
  if (offset >= held_.size()) return {};
  return held_.subspan(offset, std::min<std::uint64_t>(size, held_.size() - offset));
}

std::size_t Storage::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  if (in_memory()) {
    const Bytes found = held(offset, out.size());
    std::copy(found.begin(), found.end(), out.begin());
    return found.size();
  }
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a file that cannot be read to its end is as one that stops there
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Bytes Window::page(std::uint32_t number) {
  if (number == 0) return {};
  const std::uint64_t offset = static_cast<std::uint64_t>(number - 1) * page_size_;
  if (storage_.in_memory()) {
    const Bytes found = storage_.held(offset, page_size_);
    return found.size() == page_size_ ? found : Bytes{};
  }
  if (offset < begin_ || offset + page_size_ > end_) {
    ahead_ = offset == end_ && end_ != 0 ? std::min(ahead_ * 2, std::max<std::uint64_t>(kMost, page_size_))
                                         : page_size_;
    ahead_ -= ahead_ % page_size_;
    buffer_.resize(std::max<std::size_t>(buffer_.size(), ahead_));
    begin_ = offset;
    end_ = offset + storage_.read(offset, std::span(buffer_).first(ahead_));
    if (end_ < offset + page_size_) {
      begin_ = end_ = 0;
      return {};
    }
  }
  return Bytes(buffer_).subspan(offset - begin_, page_size_);
}

}  // namespace torchtrt_viz::sqlite
