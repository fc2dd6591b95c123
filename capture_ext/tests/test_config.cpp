#include <limits.h>

#include "core/config.hpp"
#include "core/options.hpp"
#include "tests/check.hpp"

namespace torchtrt_viz {
namespace {

bool same(const ProfileConfig& a, const ProfileConfig& b) {
  return a.execution == b.execution && a.level == b.level && a.format == b.format &&
         a.path_prefix == b.path_prefix && a.generation == b.generation;
}

TEST(every_change_makes_a_generation) {
  const auto before = config_generation();
  CHECK_EQUAL(change_config({.execution = true}), before + 1);
  CHECK_EQUAL(config_generation(), before + 1);
  CHECK_EQUAL(config_snapshot().generation, before + 1);
  CHECK(config_snapshot().execution);
  change_config({.execution = false, .level = "phases", .format = "trex", .path_prefix = "/a/b"});
  const auto after = config_snapshot();
  CHECK_EQUAL(after.generation, before + 2);
  CHECK(!after.execution);
  CHECK_EQUAL(after.level, Level::phases);
  CHECK_EQUAL(after.format, Format::trex);
  CHECK_EQUAL(after.path_prefix, "/a/b");
  CHECK_EQUAL(reset_config(), before + 3);
  CHECK(!config_snapshot().path_prefix.empty());
}

TEST(refused_values_change_nothing) {
  reset_config();
  const auto before = config_snapshot();
  const ConfigChange wrong[] = {
      {.execution = true, .level = "everything"},
      {.execution = true, .format = "json"},
      {.execution = true, .path_prefix = ""},
      {.level = "layers", .path_prefix = std::string(PATH_MAX, 'x')},
      {.path_prefix = std::string("a\0b", 3)},
      {.level = "Layers"},
      {.level = ""},
  };
  for (const auto& change : wrong) {
    const auto failure = test::failure_of([&] { change_config(change); });
    CHECK_EQUAL(failure.code(), Code::refused_option);
    CHECK(failure.refusal() != nullptr);
    CHECK(!failure.refusal()->key.empty());
    CHECK(!failure.refusal()->choices.empty());
    CHECK(test::says(failure, failure.refusal()->choices));
    CHECK(same(config_snapshot(), before));
  }
}

TEST(a_refusal_shows_unprintable_bytes) {
  const auto failure = test::failure_of([] { parse_level("torchtrt_profile_level", "lay\x01rs\n"); });
  CHECK(test::says(failure, "'lay\\x01rs\\x0a'"));
  CHECK(test::says(failure, "torchtrt_profile_level"));
  CHECK(test::says(failure, "off, delegate, phases or layers"));
}

TEST(runtime_options_override_compile_specs) {
  ProfileConfig process;
  process.path_prefix = "/process";
  OptionSet load, specs;
  specs.level = Level::phases;
  specs.format = Format::trex;
  specs.path_prefix = "/spec";
  load.level = Level::layers;
  load.path_prefix = "/load";
  const auto settings = resolve(load, process, specs);
  CHECK_EQUAL(settings.level, Level::layers);
  CHECK_EQUAL(settings.source, LevelSource::load_option);
  CHECK_EQUAL(settings.format, Format::trex);
  CHECK_EQUAL(settings.path_prefix, "/load");
}

TEST(compile_specs_are_defaults) {
  ProfileConfig process;
  process.path_prefix = "/process";
  OptionSet specs;
  specs.level = Level::phases;
  auto settings = resolve({}, process, specs);
  CHECK_EQUAL(settings.level, Level::phases);
  CHECK_EQUAL(settings.source, LevelSource::compile_spec);
  CHECK_EQUAL(settings.format, Format::etdump);
  CHECK_EQUAL(settings.path_prefix, "/process");
  settings = resolve({}, process, {});
  CHECK_EQUAL(settings.level, Level::off);
  CHECK_EQUAL(settings.source, LevelSource::none);
}

TEST(the_process_switch_reaches_what_has_no_option_of_its_own) {
  ProfileConfig process;
  process.execution = true;
  process.level = Level::layers;
  process.format = Format::perfetto;
  process.path_prefix = "/process";
  OptionSet specs;
  specs.level = Level::delegate;
  specs.path_prefix = "/spec";
  auto settings = resolve({}, process, specs);
  CHECK_EQUAL(settings.level, Level::layers);
  CHECK_EQUAL(settings.source, LevelSource::process);
  CHECK_EQUAL(settings.format, Format::perfetto);
  CHECK_EQUAL(settings.path_prefix, "/process");
  OptionSet load;
  load.level = Level::off;
  settings = resolve(load, process, specs);
  CHECK_EQUAL(settings.level, Level::off);
  CHECK_EQUAL(settings.source, LevelSource::load_option);
}

}  // namespace
}  // namespace torchtrt_viz
