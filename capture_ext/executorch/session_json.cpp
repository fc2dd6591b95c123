#include "executorch/session_json.hpp"

#include "formats/io/json_text.hpp"

namespace torchtrt_viz::et {
namespace {

const char* status_name(RunStatus status) {
  return status == RunStatus::ok ? "ok" : status == RunStatus::failed ? "failed" : "unfinished";
}

template <typename Rows, typename Write>
std::string array_of(const Rows& rows, Write&& write) {
  std::string out = "[";
  for (const auto& row : rows) {
    out += out.size() == 1 ? "\n  " : ",\n  ";
    write(out, row);
  }
  return out + "]";
}

std::string anchors(Program& program) {
  return array_of(program.anchors(), [](std::string& out, const auto& row) {
    const auto& [what, anchor] = row;
    JsonObject(out)
        .text("what", what)
        .integer("ticks_before", static_cast<std::int64_t>(anchor.ticks_before))
        .integer("ticks_after", static_cast<std::int64_t>(anchor.ticks_after))
        .integer("monotonic_ns", anchor.monotonic_ns)
        .integer("unix_ns", anchor.unix_ns)
        .integer("tick_numerator", static_cast<std::int64_t>(anchor.tick_numerator))
        .integer("tick_denominator", static_cast<std::int64_t>(anchor.tick_denominator))
        .close();
  });
}

std::string blocks(Program& program) {
  if (program.log() == nullptr) return "[]";
  std::vector<std::uint64_t> counts;
  std::vector<std::string> names;
  const auto rows = program.log()->blocks(counts, names);
  std::size_t i = 0;
  return array_of(rows, [&](std::string& out, const EventColumns::Block& block) {
    JsonObject(out)
        .text("name", names[i])
        .text("method", block.method)
        .integer("start_ticks", static_cast<std::int64_t>(block.start))
        .integer("end_ticks", static_cast<std::int64_t>(block.end))
        .integer("thread", block.thread)
        .text("status", status_name(block.status))
        .text("error", block.error)
        .integer("events", static_cast<std::int64_t>(counts[i]))
        .close();
    ++i;
  });
}

std::string engines(Program& program) {
  return array_of(program.engines(), [](std::string& out, const EngineInfo& engine) {
    JsonObject(out)
        .text("engine_id", engine.engine_id)
        .text("name", engine.identity.name)
        .text("method", engine.identity.method)
        .integer("delegate_index", engine.identity.delegate_index)
        .integer("instance", engine.instance)
        .text("runtime", engine.identity.runtime)
        .text("owner", engine.identity.owner)
        .text("level", level_name(engine.level))
        .text("level_source", level_source_name(engine.level_source))
        .text("format", format_name(engine.format))
        .text("path_prefix", engine.path_prefix)
        .integer("calls", engine.calls)
        .integer("failed_calls", engine.failed_calls)
        .integer("attachments", engine.attachments)
        .integer("contexts", engine.contexts)
        .texts("layers", engine.layers)
        .texts("files", engine.files)
        .boolean("alive", engine.alive)
        .text("last_error", engine.last_error)
        .close();
  });
}

}  // namespace

std::string session_json(Program& program, const std::string& executorch_version) {
  std::string versions;
  JsonObject(versions).text("executorch", executorch_version).close();
  std::string out;
  JsonObject(out)
      .text("program", program.path())
      .raw("anchors", anchors(program))
      .raw("blocks", blocks(program))
      .raw("engines", engines(program))
      .raw("versions", versions)
      .close();
  return out + "\n";
}

}  // namespace torchtrt_viz::et
