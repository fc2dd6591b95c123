#include "formats/kineto/trace_json.hpp"

#include <utility>

#include "formats/io/json_text.hpp"

namespace torchtrt_viz {

TraceJson::TraceJson(Form form) : form_(form) { out_ = form == Form::object ? "{\"traceEvents\":[" : "["; }

void TraceJson::begin() {
  out_ += first_ ? "\n" : ",\n";
  first_ = false;
}

void TraceJson::metadata_event(std::string_view what, std::int64_t pid, std::int64_t tid,
                               std::string_view name) {
  begin();
  std::string args;
  JsonObject(args).text("name", name).close();
  JsonObject(out_)
      .text("name", what)
      .text("ph", "M")
      .integer("pid", pid)
      .integer("tid", tid)
      .raw("args", args)
      .close();
}

void TraceJson::track(std::int64_t pid, std::string_view process, std::int64_t tid, std::string_view thread) {
  if (pid != std::exchange(last_pid_, pid)) metadata_event("process_name", pid, tid, process);
  metadata_event("thread_name", pid, tid, thread);
}

void TraceJson::slice(std::string_view name, std::string_view category, std::int64_t pid, std::int64_t tid,
                      std::int64_t start_ns, std::int64_t dur_ns, std::string_view args) {
  begin();
  JsonObject event(out_);
  event.text("ph", "X").text("name", name);
  if (!category.empty()) event.text("cat", category);
  event.integer("pid", pid).integer("tid", tid).raw("ts", {});
  append_json_us(out_, start_ns);
  event.raw("dur", {});
  append_json_us(out_, dur_ns);
  if (!args.empty()) event.raw("args", args);
  event.close();
}

void TraceJson::named_slice(std::string_view name, std::string_view process, std::int64_t tid,
                            std::int64_t start_ns, std::int64_t dur_ns, std::string_view args) {
  begin();
  JsonObject event(out_);
  event.text("name", name).text("ph", "X").raw("ts", {});
  append_json_us(out_, start_ns);
  event.raw("dur", {});
  append_json_us(out_, dur_ns);
  event.integer("tid", tid).text("pid", process).raw("args", args.empty() ? "{}" : args).close();
}

std::string TraceJson::finish(std::string_view metadata) {
  out_ += first_ ? "]" : "\n]";
  if (form_ == Form::object) {
    out_ += ",\"displayTimeUnit\":\"ns\"";
    if (!metadata.empty()) {
      out_ += ",\"otherData\":";
      out_ += metadata;
    }
    out_ += '}';
  }
  out_ += '\n';
  return std::move(out_);
}

std::string trace_json(const TraceTable& table, const std::string& metadata) {
  table.check();
  TraceJson json(TraceJson::Form::object);
  for (std::size_t i = 0; i < table.tracks.size(); ++i) {
    const auto& track = table.tracks[i];
    json.track(track.pid, track.process, static_cast<std::int64_t>(i) + 1, track.thread);
  }
  for (std::size_t i = 0; i < table.name.size(); ++i) {
    const auto& track = table.tracks[static_cast<std::size_t>(table.track[i])];
    json.slice(table.names[static_cast<std::size_t>(table.name[i])],
               table.category.empty() ? std::string_view()
                                      : table.categories[static_cast<std::size_t>(table.category[i])],
               track.pid, table.track[i] + 1, table.start_ns[i], table.dur_ns[i],
               table.args.empty() ? std::string_view() : table.args[i]);
  }
  return json.finish(metadata);
}

}  // namespace torchtrt_viz
