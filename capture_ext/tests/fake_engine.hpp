// An engine whose calls do nothing but take known times and report known layers.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/engine.hpp"
#include "core/error.hpp"

namespace torchtrt_viz::test {

class FakeEngine final : public Engine {
 public:
  // What the tests look at, alive longer than the engine.
  struct Log {
    std::vector<std::string> steps;
    std::vector<Record> records;  // what each enqueue was asked for
    int recorded_calls = 0;       // calls whose layers were asked for
    std::int64_t attachments = 0;
    std::int64_t contexts = 0;
    bool destroyed = false;
  };

  FakeEngine(Log& log, std::vector<std::string> layer_names) : log_(log), names_(std::move(layer_names)) {
    input_.name = "x";
    output_.name = "y";
    input_.sizes = output_.sizes = Dims(std::vector<int>{4});
  }
  ~FakeEngine() override { log_.destroyed = true; }

  std::string fail_at;  // name of the step that fails

  std::string_view runtime() const override { return "host"; }
  std::span<const BindingInfo> inputs() const override { return {&input_, 1}; }
  std::span<const BindingInfo> outputs() const override { return {&output_, 1}; }
  void bind_inputs(std::span<const TensorView>) override { step("bind_inputs"); }
  void infer_shapes() override { step("infer_shapes"); }
  void bind_outputs(std::span<OutputView>) override { step("bind_outputs"); }
  void enqueue(std::uint64_t call, void*, Record record) override {
    log_.records.push_back(record);
    if (record == Record::layers) {
      ++log_.recorded_calls;
      auto at = monotonic_ns();
      for (std::size_t i = 0; i < names_.size(); ++i) {
        SpanRecord span;
        span.layer = layers_.row("layer_" + std::to_string(i), names_[i], "kernel");
        span.name = layers_[span.layer].name_id;
        span.kind = SpanKind::layer;
        span.call = call;
        span.start_ns = at;
        span.end_ns = at = at + 1000 * static_cast<std::int64_t>(i + 1);
        reports_.push_back(span);
      }
      while (monotonic_ns() < at) {
      }
    }
    step("enqueue");
  }
  void stage_outputs(std::span<OutputView>) override { step("stage_outputs"); }
  void synchronize() override { step("synchronize"); }
  void want(Record most) override {
    if (most == Record::layers && !attached_) {
      attached_ = true;
      ++log_.attachments;
    }
  }
  void prepare() override {
    ++log_.contexts;
    step("prepare");
  }
  std::int64_t attachments() const override { return log_.attachments; }
  std::int64_t contexts() const override { return log_.contexts; }
  void collect(SpanReports& out) override {
    out.insert(out.end(), reports_.begin(), reports_.end());
    reports_.clear();
  }
  const LayerTable& layers() const override { return layers_; }
  std::string layer_information() const override { return "{\"Layers\":[]}"; }

 private:
  void step(const char* name) {
    log_.steps.emplace_back(name);
    if (fail_at == name) throw Error(Code::internal, std::string(name) + " was told to fail");
  }
  Log& log_;
  std::vector<std::string> names_;
  BindingInfo input_, output_;
  LayerTable layers_;
  SpanReports reports_;
  bool attached_ = false;
};

}  // namespace torchtrt_viz::test
