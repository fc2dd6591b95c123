#include "core/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace torchtrt_viz {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& what, const std::string& path, int error) {
  return Error(Code::io_error, "cannot " + what + " " + path + ": " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) (void)::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

void make_directories(const fs::path& directory) {
  if (directory.empty()) return;
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) throw system_error("create directory", directory.string(), failed.value());
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  const fs::path target(path);
  make_directories(target.parent_path());
  const std::string temporary =
      path + ".tmp" + std::to_string(getpid()) + "-" + std::to_string(counter.fetch_add(1));
  int error = 0;
  {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) throw system_error("create", temporary, errno);
    error = write_all(file.get(), bytes);
    if (error == 0 && ::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) error = errno;
    if (file.close() != 0 && error == 0) error = errno;
  }
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    (void)::unlink(temporary.c_str());
    throw system_error("write", path, error);
  }
}

void check_directory(const std::string& path) {
  make_directories(path);
  if (::access(path.c_str(), W_OK | X_OK) != 0) throw system_error("write into directory", path, errno);
}

}  // namespace torchtrt_viz
