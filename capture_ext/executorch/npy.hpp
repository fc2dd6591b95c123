// numpy's .npy files (format 1.0 to 3.0), for the native runner: plain arrays in C order, little-endian.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "executorch/program.hpp"

namespace torchtrt_viz::et {

struct NpyArray {
  InputTensor tensor;  // points into `data`
  std::unique_ptr<std::byte[]> data;
};
NpyArray read_npy(const std::string& path);

// bfloat16, which numpy lacks, is written as its bits ("<u2").
void write_npy(const std::string& path, const OutputTensor& tensor);

}  // namespace torchtrt_viz::et
