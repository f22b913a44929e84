// symbols_lookup FILE [--names]: reads addresses of FILE (hexadecimal, as the linker gave them)
// from stdin and prints per address one line: "function|file:line" innermost first, joined by ';'.
// Exit 3 and the reason on stderr when the file cannot be read.
#include <cstdio>
#include <cstring>

#include "tests/unit/symbols/segments.h"
#include "writers/symbols/resolver.h"

int main(int argc, char** argv) {
  using namespace aon;
  if (argc < 2) return 2;
  const symbols::test::Segments segments(argv[1]);
  std::vector<uint64_t> offsets;
  unsigned long long address = 0;
  while (std::scanf("%llx", &address) == 1) offsets.push_back(segments.offset_of(address));
  symbols::ResolverOptions options;
  options.wants_lines = argc < 3 || std::strcmp(argv[2], "--names") != 0;
  options.memory_bytes = uint64_t{256} << 20;
  options.module_seconds = 10;
  symbols::Resolver resolver(options);
  const auto report =
      resolver.resolve({argv[1], {}}, offsets, [](size_t, std::span<const symbols::Frame> frames) {
        const char* between = "";
        for (const symbols::Frame& frame : frames) {
          std::printf("%s%.*s|%.*s:%u", between, static_cast<int>(frame.function.size()),
                      frame.function.data(), static_cast<int>(frame.file.size()), frame.file.data(),
                      frame.line);
          between = ";";
        }
        std::printf("\n");
      });
  if (report) {
    std::fprintf(stderr, "%s\n", report->remark.c_str());
    return 0;
  }
  std::fprintf(stderr, "symbols_lookup: %s\n", report.error().message.c_str());
  return 3;
}
