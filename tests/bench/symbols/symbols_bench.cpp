// bench_symbols FILE COUNT [lines]: names COUNT distinct addresses of FILE's .text, spread evenly
// and asked for in random order, and prints seconds, the peak memory of this process and its helper
// together, seconds of CPU of both, and how many were named. With `lines` also source lines and
// inlined functions.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "core/base/elf_file.h"
#include "writers/symbols/resolver.h"

namespace {

using namespace aon;

std::vector<uint64_t> text_offsets(const ElfFile& file, uint64_t count) {
  const ElfSection* text = file.section(".text");
  std::vector<uint64_t> offsets;
  if (text == nullptr || text->header.sh_size < count) return offsets;
  for (uint64_t i = 0; i < count; ++i)
    offsets.push_back(text->header.sh_offset +
                      static_cast<uint64_t>(static_cast<double>(text->header.sh_size) *
                                            static_cast<double>(i) / static_cast<double>(count)));
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937_64(1));
  return offsets;
}

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double peak_mib(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_symbols FILE COUNT [lines]\n");
    return 2;
  }
  std::vector<uint64_t> offsets;
  std::string build_id;
  {
    const Result<ElfFile> file = ElfFile::open(argv[1]);
    if (file) offsets = text_offsets(*file, std::strtoull(argv[2], nullptr, 10));
    if (file) build_id = file->build_id();
  }
  if (offsets.empty()) {
    std::fprintf(stderr, "bench_symbols: %s: has not that many addresses\n", argv[1]);
    return 1;
  }
  symbols::ResolverOptions options;
  options.wants_lines = argc > 3;
  uint64_t frame_count = 0;
  const double before_s = cpu_seconds(RUSAGE_SELF);
  const auto begin = std::chrono::steady_clock::now();
  symbols::Resolver resolver(options);
  const auto report =
      resolver.resolve({argv[1], build_id}, offsets,
                       [&](size_t, std::span<const symbols::Frame> f) { frame_count += f.size(); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (!report) {
    std::fprintf(stderr, "bench_symbols: %s\n", report.error().message.c_str());
    return 1;
  }
  std::printf("%.3f s %.0f MiB %.3f s of CPU, %llu named, %llu with lines, %llu frames\n",
              elapsed.count(), peak_mib(RUSAGE_SELF) + peak_mib(RUSAGE_CHILDREN),
              cpu_seconds(RUSAGE_SELF) - before_s + cpu_seconds(RUSAGE_CHILDREN),
              static_cast<unsigned long long>(report->named_count),
              static_cast<unsigned long long>(report->line_count),
              static_cast<unsigned long long>(frame_count));
  return 0;
}
