// The tests' framework: named tests that register themselves, checks that say where and what.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/failure_of.hpp"

namespace torchtrt_viz::test {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Registered {
  Registered(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

template <typename T>
std::string show(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else {
    std::ostringstream text;
    text << value;
    return text.str();
  }
}

inline void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  ++failures();
}

template <typename A, typename B>
void check_equal(const char* file, int line, const char* text, const A& a, const B& b) {
  if (!(a == b)) fail(file, line, std::string(text) + ": " + show(a) + " is not " + show(b));
}

// A directory of its own, gone at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "torchtrt_viz_test.XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path() const { return path_.string(); }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) out.push_back(entry.path().string());
    }
    return out;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Runs the tests whose name contains the argument, or all.
inline int run_all(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  int ran = 0;
  for (const auto& test : tests()) {
    if (std::string(test.name).find(wanted) == std::string::npos) continue;
    const int before = failures();
    try {
      test.run();
    } catch (const std::exception& thrown) {
      fail(test.name, 0, std::string("threw: ") + thrown.what());
    }
    std::printf("%s %s\n", failures() == before ? "ok  " : "FAIL", test.name);
    ++ran;
  }
  std::printf("%d tests, %d failed checks\n", ran, failures());
  return failures() == 0 && ran > 0 ? 0 : 1;
}

}  // namespace torchtrt_viz::test

#define TEST(name)                                                            \
  static void name();                                                         \
  static const torchtrt_viz::test::Registered registered_##name(#name, name); \
  static void name()

#define CHECK(condition) ((condition) ? void() : torchtrt_viz::test::fail(__FILE__, __LINE__, #condition))

#define CHECK_THROWS(work) CHECK(torchtrt_viz::test::throws([&] { (void)(work); }))

#define CHECK_EQUAL(a, b) torchtrt_viz::test::check_equal(__FILE__, __LINE__, #a " == " #b, a, b)
