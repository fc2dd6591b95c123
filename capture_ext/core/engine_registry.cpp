#include "core/engine_registry.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "core/clock.hpp"

namespace torchtrt_viz {
namespace {

constexpr std::size_t kForgottenKept = 256;

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<EngineEntry>> entries;
  std::map<std::string, std::int64_t> instances;
};

// Never destroyed: engines report to it while the process ends.
Registry& registry() {
  static Registry* const instance = new Registry;  // NOLINT
  return *instance;
}

thread_local EngineLoadScope* current_scope = nullptr;

std::int64_t rank_of_environment() {
  const char* text = std::getenv("RANK");
  if (text == nullptr) return -1;
  std::int64_t value = -1;
  const std::string_view view(text);
  const auto result = std::from_chars(view.data(), view.data() + view.size(), value);
  return result.ec == std::errc() && result.ptr == view.data() + view.size() && value >= 0 ? value : -1;
}

std::atomic<std::int64_t>& rank_cell() {
  static std::atomic<std::int64_t> cell{rank_of_environment()};
  return cell;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x ^= x >> 30U;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27U;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// Distinguishes processes that were given the same id at different times or on different hosts; a forked
// child gets its own.
std::string process_token() {
  static std::mutex mutex;
  static pid_t pid = -1;
  static std::string token;
  const std::lock_guard lock(mutex);
  if (pid != getpid()) {
    pid = getpid();
    char host[256] = {};
    (void)gethostname(host, sizeof host - 1);
    std::uint64_t seed =
        static_cast<std::uint64_t>(wall_anchor().unix_ns) ^ mix(static_cast<std::uint64_t>(pid));
    for (const char c : std::string_view(host)) seed = mix(seed ^ static_cast<unsigned char>(c));
    char text[40];
    std::snprintf(text, sizeof text, "p%ld-%06llx", static_cast<long>(pid),
                  static_cast<unsigned long long>(mix(seed) & 0xFFFFFFU));
    token = text;
  }
  return token;
}

void forget_old(std::vector<std::shared_ptr<EngineEntry>>& entries) {
  std::size_t gone = 0;
  for (const auto& entry : entries) {
    const auto info = entry->info();
    gone += !info.alive && info.files.empty() ? 1 : 0;
  }
  if (gone <= kForgottenKept) return;
  std::erase_if(entries, [](const auto& entry) {
    const auto info = entry->info();
    return !info.alive && info.files.empty();
  });
}

}  // namespace

std::shared_ptr<EngineEntry> register_engine(EngineIdentity identity) {
  EngineInfo info;
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(identity.content_hash));
  info.engine_id = std::string(hash) + "-" + file_name_part(identity.method) + "-" +
                   std::to_string(identity.delegate_index);
  info.identity = std::move(identity);
  auto& all = registry();
  std::shared_ptr<EngineEntry> entry;
  {
    const std::lock_guard lock(all.mutex);
    info.instance = all.instances[info.engine_id]++;
    entry = std::make_shared<EngineEntry>(std::move(info));
    forget_old(all.entries);
    all.entries.push_back(entry);
  }
  if (current_scope != nullptr) current_scope->engines_.push_back(entry);
  return entry;
}

std::vector<std::shared_ptr<EngineEntry>> registered_engines() {
  const std::lock_guard lock(registry().mutex);
  return registry().entries;
}

EngineLoadScope::EngineLoadScope() : outer_(current_scope) { current_scope = this; }
EngineLoadScope::~EngineLoadScope() { current_scope = outer_; }

std::string file_name_part(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '-';
    out += kept ? c : '_';
  }
  if (out.empty() || out.front() == '.') out.insert(out.begin(), '_');
  return out;
}

void set_rank(std::int64_t value) { rank_cell().store(std::max<std::int64_t>(value, -1)); }
std::int64_t rank() { return rank_cell().load(); }

std::string file_stem(const EngineInfo& info) {
  std::string out = file_name_part(info.identity.name) + "-" + info.engine_id;
  if (rank() >= 0) out.append("-rank").append(std::to_string(rank()));
  out.append("-").append(process_token());
  if (info.instance > 0) out.append("-").append(std::to_string(info.instance));
  return out;
}

}  // namespace torchtrt_viz
