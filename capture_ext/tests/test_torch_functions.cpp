#include <map>

#include "tests/check.hpp"
#include "torch_ops/torch_functions.hpp"

namespace torchtrt_viz {
namespace {

using torch_ops::TorchFunctions;

void stand_in() {}

void* address() { return reinterpret_cast<void*>(&stand_in); }

TEST(every_function_that_is_found_can_be_called) {
  TorchFunctions functions;
  std::map<std::string, int> asked;
  const auto missing = torch_ops::resolve(
      [&](const char* name) {
        ++asked[name];
        return address();
      },
      functions);
  CHECK(missing.empty());
  CHECK(functions.aoti_torch_library_init_fragment != nullptr);
  CHECK(functions.aoti_torch_dtype_float8_e5m2 != nullptr);
  CHECK(functions.torch_exception_get_what_without_backtrace != nullptr);
  for (const auto& [name, times] : asked) CHECK_EQUAL(times, 1);
}

TEST(a_function_that_is_not_found_is_named) {
  TorchFunctions functions;
  const auto missing = torch_ops::resolve(
      [](const char* name) { return std::string(name) == "torch_list_size" ? nullptr : address(); },
      functions);
  CHECK_EQUAL(missing.size(), std::size_t{1});
  CHECK_EQUAL(missing.front(), std::string("torch_list_size"));
}

TEST(an_older_torch_may_lack_the_words_for_its_failures) {
  TorchFunctions functions;
  const auto missing = torch_ops::resolve(
      [](const char* name) {
        return std::string(name) == "torch_exception_get_what_without_backtrace" ? nullptr : address();
      },
      functions);
  CHECK(missing.empty());
  CHECK(functions.torch_exception_get_what_without_backtrace == nullptr);
}

TEST(what_a_torch_lacks_is_said_with_its_version_and_the_one_that_is_needed) {
  const std::uint64_t version = (std::uint64_t{2} << 56U) | (std::uint64_t{9} << 48U);
  CHECK_EQUAL(torch_ops::lacking("/a/libtorch_cpu.so", version, {"f"}),
              std::string("/a/libtorch_cpu.so (torch 2.9) lacks f; torch 2.10 and later have them"));
  CHECK_EQUAL(torch_ops::lacking("x", 0, {"a", "b", "c", "d", "e"}),
              std::string("x lacks a, b, c and 2 more functions; torch 2.10 and later have them"));
}

TEST(a_process_without_torch_is_told_to_load_it) {
  const auto why = torch_ops::find_torch();
  CHECK(why.find("no torch is loaded in this process") != std::string::npos);
  CHECK_EQUAL(torch_ops::find_torch(), why);
}

}  // namespace
}  // namespace torchtrt_viz
