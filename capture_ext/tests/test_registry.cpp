#include <sys/wait.h>
#include <unistd.h>

#include "core/engine_registry.hpp"
#include "core/layers.hpp"
#include "core/names.hpp"
#include "tests/check.hpp"

namespace torchtrt_viz {
namespace {

TEST(names_are_numbered_once) {
  const auto a = intern_name("a name");
  CHECK_EQUAL(intern_name(std::string("a name")), a);
  CHECK(intern_name("another name") != a);
  CHECK_EQUAL(name_text(a), "a name");
  CHECK_EQUAL(name_text(0xFFFFFFFF), "");
}

TEST(file_names_are_safe) {
  CHECK_EQUAL(file_name_part("../../etc/passwd"), "_.._.._etc_passwd");
  CHECK_EQUAL(file_name_part(""), "_");
  CHECK_EQUAL(file_name_part("a b\x01\xC3\xA9"), "a_b___");
  CHECK_EQUAL(file_name_part(std::string(500, 'x')).size(), std::size_t{80});
}

TEST(engine_ids_are_equal_everywhere_and_file_stems_nowhere) {
  EngineIdentity identity;
  identity.content_hash = 0xabcdef;
  identity.name = "reg/ion";
  identity.method = "decode";
  identity.delegate_index = 3;
  const auto first = register_engine(identity)->info();
  const auto second = register_engine(identity)->info();
  CHECK_EQUAL(first.engine_id, "0000000000abcdef-decode-3");
  CHECK_EQUAL(second.engine_id, first.engine_id);
  CHECK(file_stem(first) != file_stem(second));
  CHECK(file_stem(first).starts_with("reg_ion-0000000000abcdef-decode-3"));
  set_rank(7);
  CHECK(file_stem(first).find("-rank7-") != std::string::npos);
  set_rank(-1);
  CHECK(file_stem(first).find("rank") == std::string::npos);
}

TEST(a_forked_child_has_stems_of_its_own) {
  const auto info = register_engine({})->info();
  const auto mine = file_stem(info);
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  const auto child = fork();
  if (child == 0) {
    const auto theirs = file_stem(info);
    (void)!write(pipes[1], theirs.data(), theirs.size());
    _exit(0);
  }
  char buffer[512] = {};
  const auto size = read(pipes[0], buffer, sizeof buffer);
  waitpid(child, nullptr, 0);
  CHECK(size > 0);
  CHECK(std::string(buffer, static_cast<std::size_t>(size)) != mine);
}

TEST(load_scopes_collect_engines_of_their_thread) {
  EngineLoadScope outer;
  const auto a = register_engine({});
  {
    EngineLoadScope inner;
    const auto b = register_engine({});
    CHECK(inner.engines() == std::vector{b});
  }
  CHECK(outer.engines() == std::vector{a});
}

TEST(layers_keep_what_was_foretold_and_what_the_runtime_says) {
  LayerTable table;
  LayerInfo info;
  info.id = "layer_0001_add.out";
  info.name = "block.add";
  info.op = "aten.add.Tensor";
  info.nodes = {"add_1"};
  info.module = "block";
  info.whole = true;
  table.foretell(info);
  CHECK(table.is_whole("layer_0001_add.out"));
  const auto row = table.row("layer_0001_add.out", "add.out", "add.out");
  CHECK_EQUAL(table.row("layer_0001_add.out", "other", "other"), row);
  CHECK_EQUAL(table[row].name, "block.add");
  CHECK_EQUAL(table[row].kernel, "add.out");
  CHECK(table.is_whole("layer_0001_add.out"));
  CHECK_EQUAL(
      table[row].metadata + "}",
      "{\"name\":\"block.add\",\"kernel\":\"add.out\",\"op\":\"aten.add.Tensor\",\"module\":\"block\","
      "\"nodes\":[\"add_1\"]}");
  const auto unknown = table.row("layer_0002_x", "x", "x");
  CHECK(unknown != row);
  CHECK_EQUAL(table[unknown].name, "x");
  CHECK(!table.is_whole("layer_0002_x"));
}

}  // namespace
}  // namespace torchtrt_viz
