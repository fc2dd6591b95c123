// trt_runner: load a .pte, apply profiling options, run it, write its ETDump. No LibTorch, no Python.
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/atomic_file.hpp"
#include "core/clock.hpp"
#include "core/options.hpp"
#include "executorch/delegate.hpp"
#include "executorch/npy.hpp"
#include "executorch/program.hpp"
#include "executorch/session_json.hpp"

namespace {

namespace tv = torchtrt_viz;
namespace et = torchtrt_viz::et;

constexpr int kRunFailed = 1, kUsage = 2, kLoadFailed = 3;

constexpr char kHelp[] =
    "usage: trt_runner PROGRAM.pte [options]\n"
    "\n"
    "Runs a program, with its TensorRTBackend regions and whatever else it delegates, and records its "
    "events.\n"
    "\n"
    "  --method NAME            which method (default: forward, or the only one)\n"
    "  --input FILE.npy         an input, in order; repeat. Without any, inputs are filled with ones\n"
    "  --runs N                 how often to run (default 1)\n"
    "  --warmup N               runs before those, not recorded (default 0)\n"
    "  --output-dir DIR         write the outputs of the last run there, output_0.npy and so on\n"
    "  --etdump FILE            write the events there, and clocks, methods and engines to FILE.json\n"
    "  --level LEVEL            off, delegate, phases or layers: detail of TensorRTBackend's events\n"
    "  --format FORMAT          etdump, perfetto or trex: the latter two write files of their own besides\n"
    "  --path-prefix DIR        where those go\n"
    "  --option BACKEND:KEY=VALUE   any load-time option; repeat. true, false and integers are taken as "
    "such\n"
    "  --method-only            record no operators, only methods and delegates\n"
    "  --library FILE.so        load a library of kernels or backends first; repeat\n"
    "  --list                   print the program's methods, inputs and backends, and run nothing\n"
    "  --version                print versions\n"
    "\n"
    "exit status: 0 done, 1 a run failed, 2 wrong use, 3 the program could not be loaded\n";

struct Arguments {
  std::string program;
  std::optional<std::string> method;
  std::vector<std::string> inputs, libraries;
  std::int64_t runs = 1, warmup = 0;
  std::string output_dir, etdump;
  bool method_only = false, list = false;
  et::LoadOptions options;
};

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "trt_runner: %s\n", what.c_str());
  return code;
}

bool parse_count(const std::string& text, std::int64_t& out) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && out >= 0;
}

et::LoadOption option_value(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size()) return number;
  return text;
}

// Empty: well; else what is wrong.
std::string parse(const std::vector<std::string>& words, Arguments& out) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word == "--method-only" || word == "--list") {
      (word == "--list" ? out.list : out.method_only) = true;
      continue;
    }
    if (!word.starts_with("--")) {
      if (!out.program.empty()) return "one program at a time: " + out.program + " or " + word;
      out.program = word;
      continue;
    }
    if (i + 1 == words.size()) return word + " needs a value, or is not known (--help lists the options)";
    const auto& value = words[++i];
    auto& profile = out.options[et::kBackendId];
    if (word == "--method") {
      out.method = value;
    } else if (word == "--input") {
      out.inputs.push_back(value);
    } else if (word == "--library") {
      out.libraries.push_back(value);
    } else if (word == "--output-dir") {
      out.output_dir = value;
    } else if (word == "--etdump") {
      out.etdump = value;
    } else if (word == "--level") {
      profile[tv::kLevelKey] = value;
    } else if (word == "--format") {
      profile[tv::kFormatKey] = value;
    } else if (word == "--path-prefix") {
      profile[tv::kPathPrefixKey] = value;
    } else if (word == "--runs" || word == "--warmup") {
      if (!parse_count(value, word == "--runs" ? out.runs : out.warmup))
        return word + " takes a number, not '" + value + "'";
    } else if (word == "--option") {
      const auto colon = value.find(':');
      const auto equals = value.find('=', colon == std::string::npos ? 0 : colon);
      if (colon == std::string::npos || equals == std::string::npos) {
        return "--option takes BACKEND:KEY=VALUE, not '" + value + "'";
      }
      out.options[value.substr(0, colon)][value.substr(colon + 1, equals - colon - 1)] =
          option_value(value.substr(equals + 1));
    } else {
      return "there is no option " + word + " (--help lists them)";
    }
  }
  if (out.program.empty()) return "which program? (--help)";
  std::erase_if(out.options, [](const auto& entry) { return entry.second.empty(); });
  return {};
}

std::string choose_method(const et::Program& program, const std::optional<std::string>& wanted) {
  if (wanted) return *wanted;
  return program.methods().size() == 1 ? program.methods().front() : "forward";
}

int list(et::Program& program) {
  for (const auto& method : program.methods()) {
    const auto meta = program.describe(method);
    std::printf("%s\n", method.c_str());
    const auto values = [](const char* what, const std::vector<et::ValueMeta>& rows) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto& value = rows[i];
        std::printf("  %s %zu: %s", what, i, value.tag.c_str());
        if (value.dtype) {
          std::printf(" %s %s", std::string(tv::dtype_name(*value.dtype)).c_str(),
                      to_text(tv::Dims(value.sizes)).c_str());
        }
        std::printf("\n");
      }
    };
    values("input", meta.inputs);
    values("output", meta.outputs);
    for (const auto& backend : meta.backends) std::printf("  delegate: %s\n", backend.c_str());
  }
  return 0;
}

// One, in the type's own bits.
void fill_with_ones(tv::DType dtype, std::byte* data, std::int64_t elements) {
  const auto fill = [&](auto one) {
    auto* typed = reinterpret_cast<decltype(one)*>(data);
    for (std::int64_t i = 0; i < elements; ++i) typed[i] = one;
  };
  switch (dtype) {
    case tv::DType::float32:
      return fill(1.0F);
    case tv::DType::float64:
      return fill(1.0);
    case tv::DType::float16:
      return fill(std::uint16_t{0x3C00});
    case tv::DType::bfloat16:
      return fill(std::uint16_t{0x3F80});
    case tv::DType::int16:
    case tv::DType::uint16:
      return fill(std::uint16_t{1});
    case tv::DType::int32:
    case tv::DType::uint32:
      return fill(std::uint32_t{1});
    case tv::DType::int64:
    case tv::DType::uint64:
      return fill(std::uint64_t{1});
    case tv::DType::uint8:
    case tv::DType::int8:
    case tv::DType::boolean:
      return fill(std::uint8_t{1});
    default:
      return;  // stays 0
  }
}

struct Inputs {
  std::vector<et::InputValue> values;
  std::vector<std::unique_ptr<std::byte[]>> data;
};

Inputs read_inputs(const std::vector<std::string>& files) {
  Inputs out;
  for (const auto& file : files) {
    auto array = et::read_npy(file);
    out.values.emplace_back(std::move(array.tensor));
    out.data.push_back(std::move(array.data));
  }
  return out;
}

Inputs make_inputs(const et::MethodDescription& meta) {
  Inputs out;
  for (const auto& value : meta.inputs) {
    if (value.tag == "int") {
      out.values.emplace_back(std::int64_t{1});
    } else if (value.tag == "double") {
      out.values.emplace_back(1.0);
    } else if (value.tag == "bool") {
      out.values.emplace_back(true);
    } else {
      et::InputTensor tensor;
      tensor.view.dtype = value.dtype.value_or(tv::DType::float32);
      tensor.view.sizes = tv::Dims(value.sizes);
      // Strides of the order of dimensions that the program wants: nothing has to be copied.
      tensor.strides.resize(value.sizes.size());
      std::int64_t stride = 1;
      for (std::size_t i = value.dim_order.size(); i-- > 0;) {
        const auto d = static_cast<std::size_t>(value.dim_order[i]);
        tensor.strides[d] = stride;
        stride *= value.sizes[d];
      }
      out.data.push_back(std::make_unique<std::byte[]>(tensor.view.nbytes() + 1));
      fill_with_ones(tensor.view.dtype, out.data.back().get(), tensor.view.sizes.elements());
      tensor.view.data = out.data.back().get();
      out.values.emplace_back(std::move(tensor));
    }
  }
  return out;
}

void write_outputs(const std::string& directory, const std::vector<et::OutputValue>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto* tensor = std::get_if<et::OutputTensor>(&outputs[i]);
    if (tensor != nullptr) et::write_npy(directory + "/output_" + std::to_string(i) + ".npy", *tensor);
  }
}

void write_events(et::Program& program, const std::string& path) {
  tv::write_file(path, program.etdump());
  tv::write_file(path + ".json", et::session_json(program, TORCHTRT_VIZ_EXECUTORCH_VERSION));
}

// `code` is what the process ends with where this throws: it says how far the work has come.
int run(const Arguments& arguments, int& code) {
  code = kLoadFailed;
  for (const auto& library : arguments.libraries) et::load_library(library);
  et::Program::Settings settings;
  settings.trace = !arguments.etdump.empty();
  settings.method_only = arguments.method_only;
  settings.load_methods = false;
  const auto program = et::Program::load(arguments.program, arguments.options, settings);
  if (arguments.list) return list(*program);
  const auto method = choose_method(*program, arguments.method);
  const auto meta = program->describe(method);
  program->load_method(method);
  code = kUsage;
  const auto inputs = arguments.inputs.empty() ? make_inputs(meta) : read_inputs(arguments.inputs);

  code = kRunFailed;
  std::vector<et::OutputValue> outputs;
  std::int64_t failed = 0;
  const auto repeat = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      try {
        outputs = program->run(method, inputs.values);
      } catch (const tv::Error& failure) {
        if (failed++ == 0) (void)complain(failure.what(), 0);
      }
    }
  };
  if (program->log() != nullptr) program->log()->set_recording(arguments.warmup == 0);
  repeat(arguments.warmup);
  if (program->log() != nullptr) program->log()->set_recording(true);
  const auto begin = tv::monotonic_ns();
  repeat(arguments.runs);
  const auto took = tv::monotonic_ns() - begin;
  if (arguments.runs > 0) {
    std::printf("%s: %lld runs of '%s', %lld failed, %.3f us each\n", arguments.program.c_str(),
                static_cast<long long>(arguments.runs), method.c_str(), static_cast<long long>(failed),
                static_cast<double>(took) / 1e3 / static_cast<double>(arguments.runs));
  }
  if (!arguments.output_dir.empty() && failed == 0) write_outputs(arguments.output_dir, outputs);
  if (!arguments.etdump.empty()) {
    write_events(*program, arguments.etdump);
    std::printf("events: %s\n", arguments.etdump.c_str());
  }
  program->close();  // engines complete their files
  for (const auto& engine : program->engines()) {
    for (const auto& file : engine.files)
      std::printf("engine %s: %s\n", engine.engine_id.c_str(), file.c_str());
  }
  return failed == 0 ? 0 : kRunFailed;
}

}  // namespace

// Nothing is thrown out of main(): every failure is a line on stderr and an exit status.
int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const auto& word : words) {
    if (word == "--help" || word == "-h") return std::fputs(kHelp, stdout) < 0 ? kRunFailed : 0;
    if (word == "--version") {
      std::printf("trt_runner, built with executorch %s; delegate: %s\n", TORCHTRT_VIZ_EXECUTORCH_VERSION,
                  et::delegate_registration().detail.c_str());
      return 0;
    }
  }
  Arguments arguments;
  if (const auto wrong = parse(words, arguments); !wrong.empty()) return complain(wrong, kUsage);
  int code = kRunFailed;
  try {
    return run(arguments, code);
  } catch (...) {
    return complain(tv::current_failure().what(), code);
  }
} catch (...) {
  return kRunFailed;
}
