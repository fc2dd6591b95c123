#include "host_engine/inner_program.hpp"

#include <cstring>
#include <new>
#include <string>

#include "host_engine/et_types.hpp"
#include "host_engine/runtime_log.hpp"

namespace torchtrt_viz::et {
namespace {

namespace rt = executorch::runtime;

constexpr char kMethod[] = "forward";
constexpr std::size_t kAlignment = 16;
static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kAlignment);

Error failure(const std::string& what, rt::Error error, RuntimeLog& log) {
  std::string text = what + ": executorch says " + std::string(error_name(error));
  if (const auto reason = log.take(); !reason.empty()) text += ": " + reason;
  return {to_code(error), text};
}

}  // namespace

std::unique_ptr<InnerProgram> InnerProgram::load(std::span<const std::byte> pte) {
  RuntimeLog log;
  std::unique_ptr<InnerProgram> made(new InnerProgram);
  const std::byte* data = pte.data();
  if (reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0) {
    made->copy_.reset(new (std::nothrow) std::byte[pte.size()]);
    if (!made->copy_) throw Error(Code::out_of_memory, "no memory for the inner program");
    std::memcpy(made->copy_.get(), data, pte.size());
    data = made->copy_.get();
  }
  made->loader_.emplace(data, pte.size());
  auto program = rt::Program::load(&*made->loader_, rt::Program::Verification::InternalConsistency);
  if (!program.ok()) throw failure("the host engine's inner program is damaged", program.error(), log);
  made->program_.emplace(std::move(*program));
  const auto meta = made->program_->method_meta(kMethod);
  if (!meta.ok()) throw failure("the host engine's inner program has no method 'forward'", meta.error(), log);
  return made;
}

rt::MethodMeta InnerProgram::meta() const { return *program_->method_meta(kMethod); }

void InnerProgram::make_context(rt::EventTracer* tracer) {
  RuntimeLog log;
  context_.reset();
  auto context = std::make_unique<Context>();
  const auto about = meta();
  for (std::size_t i = 0; i < about.num_memory_planned_buffers(); ++i) {
    const auto size = about.memory_planned_buffer_size(i);
    if (!size.ok() || *size < 0)
      throw failure("the inner program's memory plan cannot be read", size.error(), log);
    const auto bytes = static_cast<std::size_t>(*size);
    std::unique_ptr<std::uint8_t[]> buffer(new (std::nothrow) std::uint8_t[bytes]());
    if (!buffer) {
      throw Error(Code::out_of_memory,
                  "the inner program plans a buffer of " + std::to_string(bytes) + " bytes");
    }
    context->spans.emplace_back(buffer.get(), bytes);
    context->planned.push_back(std::move(buffer));
  }
  context->planned_memory.emplace(
      rt::Span<rt::Span<std::uint8_t>>(context->spans.data(), context->spans.size()));
  context->manager.emplace(&context->method_allocator, &*context->planned_memory, &context->temp_allocator);
  auto method = program_->load_method(kMethod, &*context->manager, tracer);
  if (!method.ok()) throw failure("the host engine's inner program cannot be set up", method.error(), log);
  context->method.emplace(std::move(*method));
  context_ = std::move(context);
}

}  // namespace torchtrt_viz::et
