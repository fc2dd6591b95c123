#include "host_engine/runtime_log.hpp"

#include <executorch/runtime/platform/platform.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "core/error.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

constexpr std::size_t kLinesKept = 50;

thread_local RuntimeLog* current = nullptr;
std::atomic<pal_emit_log_message_method> previous{nullptr};

void emit(et_timestamp_t timestamp, et_pal_log_level_t level, const char* file, const char* function,
          std::size_t line, const char* message, std::size_t length) {
  if (current != nullptr && (level == kError || level == kFatal)) {
    regardless([&] {  // the runtime is C
      current->add({timestamp, static_cast<char>(level), file == nullptr ? "" : file,
                    function == nullptr ? "" : function, std::string(message, length), line});
    });
    if (level != kFatal) return;  // the process ends after a fatal one: it must be seen
  } else if (current != nullptr && level != kFatal) {
    return;  // the runtime's remarks on the machine are of no use in a notebook
  }
  const auto next = previous.load(std::memory_order_acquire);
  if (next != nullptr) next(timestamp, level, file, function, line, message, length);
}

// Another library may have put itself in place since (executorch's Python runtime does when it is imported).
// Written into the runtime's table, which is not const, because register_pal() logs an error at the second
// registration of a process, whoever makes it.
void install() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto* table = const_cast<rt::PalImpl*>(rt::get_pal_impl());  // NOLINT
  if (table == nullptr) return;
  const std::atomic_ref<pal_emit_log_message_method> slot(table->emit_log_message);
  const auto present = slot.load(std::memory_order_acquire);
  if (present == emit) return;
  previous.store(present, std::memory_order_release);
  slot.store(emit, std::memory_order_release);
}

}  // namespace

RuntimeLog::RuntimeLog() : outer_(current) {
  install();
  current = this;
}

RuntimeLog::~RuntimeLog() {
  current = outer_;
  for (const auto& line : lines_) {
    if (outer_ != nullptr) {
      outer_->add(line);
    } else if (const auto next = previous.load(std::memory_order_acquire)) {
      next(line.timestamp, static_cast<et_pal_log_level_t>(line.level), line.file.c_str(),
           line.function.c_str(), line.line, line.message.data(), line.message.size());
    }
  }
}

void RuntimeLog::add(Line line) {
  if (lines_.size() < kLinesKept) lines_.push_back(std::move(line));
}

std::string RuntimeLog::take() {
  std::string out;
  for (const auto& line : lines_) {
    if (!out.empty()) out += '\n';
    out += line.message;
  }
  lines_.clear();
  return out;
}

}  // namespace torchtrt_viz::et
