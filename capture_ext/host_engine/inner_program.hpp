// The ExecuTorch program inside a host engine's payload, and the one execution context made of it.
#pragma once

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"

namespace torchtrt_viz::et {

class InnerProgram {
 public:
  // Checks the program before anything in it is followed: it may be damaged. Keeps a pointer to `pte` where
  // it is aligned as the runtime needs it, so the bytes have to outlive this object; else makes a copy.
  static std::unique_ptr<InnerProgram> load(std::span<const std::byte> pte);

  executorch::runtime::MethodMeta meta() const;
  bool has_context() const noexcept { return context_ && context_->method.has_value(); }
  executorch::runtime::Method& method() { return *context_->method; }
  // Makes a context in place of the present one; `tracer` is attached to it for its life, null for none.
  void make_context(executorch::runtime::EventTracer* tracer);

 private:
  struct Context {
    executorch::extension::MallocMemoryAllocator method_allocator;
    executorch::extension::MallocMemoryAllocator temp_allocator;
    std::vector<std::unique_ptr<std::uint8_t[]>> planned;
    std::vector<executorch::runtime::Span<std::uint8_t>> spans;
    std::optional<executorch::runtime::HierarchicalAllocator> planned_memory;
    std::optional<executorch::runtime::MemoryManager> manager;
    std::optional<executorch::runtime::Method> method;  // last: it goes first
  };

  InnerProgram() = default;

  std::unique_ptr<std::byte[]> copy_;
  std::optional<executorch::extension::BufferDataLoader> loader_;
  std::optional<executorch::runtime::Program> program_;
  std::unique_ptr<Context> context_;
};

}  // namespace torchtrt_viz::et
