#include <simdjson.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/atomic_file.hpp"
#include "formats/engine/trex_profile.hpp"
#include "formats/io/json_text.hpp"
#include "formats/io/trace_table.hpp"
#include "formats/kineto/trace_json.hpp"
#include "formats/perfetto/trace_protobuf.hpp"
#include "tests/check.hpp"

namespace torchtrt_viz {
namespace {

namespace dom = simdjson::dom;

std::string as_json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string as_number(double value) {
  std::string out;
  append_json_number(out, value);
  return out;
}

std::string as_us(std::int64_t ns) {
  std::string out;
  append_json_us(out, ns);
  return out;
}

TEST(strings_are_escaped_and_utf8) {
  CHECK_EQUAL(as_json_string("a\"b\\c\n\t\x01\x7f"), "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f\"");
  CHECK_EQUAL(as_json_string("h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
              "\"h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
  const std::string replacement = "\xEF\xBF\xBD";
  CHECK_EQUAL(as_json_string("\xFF"), "\"" + replacement + "\"");
  CHECK_EQUAL(as_json_string("\xC3"), "\"" + replacement + "\"");                    // cut short
  CHECK_EQUAL(as_json_string("\xC0\x80"), "\"" + replacement + replacement + "\"");  // overlong
  CHECK_EQUAL(as_json_string("\xED\xA0\x80"),
              "\"" + replacement + replacement + replacement + "\"");  // surrogate
  CHECK_EQUAL(as_json_string("\xF4\x90\x80\x80"),
              "\"" + replacement + replacement + replacement + replacement + "\"");
}

TEST(numbers_keep_their_precision_and_are_never_nan) {
  CHECK_EQUAL(as_number(0.1), "0.1");
  CHECK_EQUAL(as_number(1234567.890123), "1234567.890123");
  CHECK_EQUAL(as_number(std::numeric_limits<double>::quiet_NaN()), "null");
  CHECK_EQUAL(as_number(-std::numeric_limits<double>::infinity()), "null");
  CHECK_EQUAL(as_us(1'234'567'891'234), "1234567891.234");
  CHECK_EQUAL(as_us(5), "0.005");
  CHECK_EQUAL(as_us(-1), "-0.001");
  CHECK_EQUAL(as_us(INT64_MIN), "-9223372036854775.808");
}

TEST(trex_percentages_sum_to_100) {
  std::vector<LayerTotal> layers;
  for (int i = 1; i <= 97; ++i) layers.push_back({"layer \"" + std::to_string(i) + "\"", i * 37 + 11, i * 7});
  const auto text = trex_profile(3, layers);
  dom::parser parser;
  const dom::array rows = parser.parse(text);
  CHECK_EQUAL(rows.size(), layers.size() + 1);
  CHECK_EQUAL(std::int64_t(rows.at(0)["count"]), 3);
  double sum = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const dom::element row = rows.at(i + 1);
    sum += double(row["percentage"]);
    CHECK_EQUAL(double(row["timeMs"]), static_cast<double>(layers[i].total_ns) / 1e6);
    CHECK(std::abs(double(row["averageMs"]) - static_cast<double>(layers[i].total_ns) / 3e6) < 1e-15);
    CHECK_EQUAL(double(row["medianMs"]), static_cast<double>(*layers[i].median_ns) / 1e6);
    CHECK_EQUAL(std::string_view(row["name"]), layers[i].name);
  }
  CHECK(std::abs(sum - 100.0) < 1e-9);
}

TEST(trex_profiles_of_nothing_are_valid) {
  CHECK_EQUAL(trex_profile(0, {}), "[]\n");
  const LayerTotal idle[] = {{"a", 0, 0}, {"b", 0, std::nullopt}};
  const auto text = trex_profile(0, idle);
  CHECK(text.find("nan") == std::string::npos);
  dom::parser parser;
  const dom::array rows = parser.parse(text);
  CHECK(rows.at(1)["percentage"].is_null());
  CHECK(rows.at(1)["averageMs"].is_null());
  CHECK_EQUAL(double(rows.at(1)["timeMs"]), 0.0);
}

TEST(trace_json_is_valid_when_empty_and_with_any_name) {
  dom::parser parser;
  for (const auto form : {TraceJson::Form::array, TraceJson::Form::object}) {
    CHECK(parser.parse(TraceJson(form).finish({})).error() == simdjson::SUCCESS);
    TraceJson trace(form);
    trace.track(1, "p\"", 2, "t\\\xFF");
    trace.slice("n\"\x02", "c", 1, 2, 1'000'000'001, 3, "{\"a\":1}");
    trace.named_slice("x", "engine \"e\"", 1, 0, 0, {});
    dom::element root;
    CHECK(parser.parse(trace.finish("{\"k\":1}")).get(root) == simdjson::SUCCESS);
    const dom::array events =
        form == TraceJson::Form::array ? root.get_array() : root["traceEvents"].get_array();
    CHECK_EQUAL(events.size(), std::size_t{4});
    CHECK_EQUAL(std::string_view(events.at(2)["name"]), "n\"\x02");
    CHECK_EQUAL(double(events.at(2)["ts"]), 1000000.001);
    CHECK_EQUAL(double(events.at(2)["dur"]), 0.003);
  }
}

TEST(span_columns_are_checked) {
  const std::int32_t name[] = {0}, far[] = {1};
  const std::int64_t start[] = {0}, dur[] = {1}, negative[] = {-1};
  TraceTable table;
  table.names = {"a"};
  table.tracks = {{1, "p", "t"}};
  table.name = name;
  table.track = name;
  table.start_ns = start;
  table.dur_ns = dur;
  CHECK(!trace_json(table, {}).empty());
  CHECK(!trace_protobuf(table, std::nullopt).empty());
  auto broken = table;
  broken.name = far;
  CHECK_THROWS(trace_json(broken, {}));
  broken = table;
  broken.track = far;
  CHECK_THROWS(trace_protobuf(broken, {}));
  broken = table;
  broken.dur_ns = negative;
  CHECK_THROWS(trace_json(broken, {}));
  broken = table;
  broken.start_ns = {};
  CHECK_THROWS(trace_json(broken, {}));
}

TEST(files_are_whole_or_not_there) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() + "/a/b/c.json";
  write_file(path, "one");
  write_file(path, "two");
  CHECK_EQUAL(test::read_file(path), "two");
  CHECK_EQUAL(directory.files().size(), std::size_t{1});  // no temporary is left
  const auto failure = test::failure_of([&] { write_file(path + "/d", "x"); });
  CHECK_EQUAL(failure.code(), Code::io_error);
  CHECK(test::says(failure, path));
  CHECK_THROWS(check_directory("/proc/self/nothing/here"));
  check_directory(directory.path() + "/new");
}

}  // namespace
}  // namespace torchtrt_viz
