// Runs a libFuzzer harness over files without libFuzzer: where its runtime does not exist, and as a test of
// the readers.
//
//   read_kineto PREFIX FILE ...    PREFIX: put before each content, for a harness that takes its options from
//   there
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: PREFIX FILE ...\n", stderr);
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    std::string content(argv[1]);
    content.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (!file.good() && !file.eof()) {
      std::fprintf(stderr, "%s cannot be read\n", argv[i]);
      return 2;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  }
  std::printf("%d files\n", argc - 2);
  return 0;
}
