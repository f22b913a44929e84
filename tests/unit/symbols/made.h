/// The programs that the symbol tests look into, and what nm says of them. Thread: any.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/symbols/segments.h"
#include "tests/unit/temporary_folder.h"
#include "writers/symbols/resolver.h"

extern const char* const kMade;      // the build writes it
extern const char* const kPrograms;  // the build writes it

namespace aon::symbols::test {

using aon::test::TemporaryFolder;

inline std::string made(const std::string& name) { return std::string(kMade) + "/" + name; }

/// First line of a command's output.
inline std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  char line[4096] = "";
  if (pipe == nullptr || std::fgets(line, sizeof(line), pipe) == nullptr) line[0] = 0;
  if (pipe != nullptr) pclose(pipe);
  std::string text = line;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// File offset of a symbol of `names_from`, in a file of the same layout.
inline uint64_t offset_of(const std::string& names_from, const std::string& symbol) {
  const std::string address = output_of("nm '" + names_from + "' | grep ' " + symbol + "$'");
  EXPECT_NE(address, "") << symbol;
  return Segments(names_from).offset_of(std::strtoull(address.c_str(), nullptr, 16));
}

inline std::string build_id_of(const std::string& path) {
  const std::string digits = output_of("readelf -nW '" + path + "' | sed -n 's/.*Build ID: //p'");
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

/// Frames with texts of their own.
struct SeenFrame {
  std::string function;
  std::string file;
  uint32_t line = 0;
  bool is_inlined = false;
  uint64_t begin_offset = 0;
};

struct Seen {
  std::vector<std::vector<SeenFrame>> frames;
  ModuleReport report;
  std::string error;
  Code code = Code::kBug;

  std::string name(size_t index) const {
    return frames.at(index).empty() ? "" : frames[index].back().function;
  }
};

inline Seen resolve(const ModuleReference& module, const std::vector<uint64_t>& offsets,
                    const ResolverOptions& options = {}) {
  Resolver resolver(options);
  Seen seen;
  auto report = resolver.resolve(module, offsets, [&](size_t index, std::span<const Frame> frames) {
    EXPECT_EQ(index, seen.frames.size());
    seen.frames.emplace_back();
    for (const Frame& frame : frames)
      seen.frames.back().push_back({std::string(frame.function), std::string(frame.file),
                                    frame.line, frame.is_inlined, frame.begin_offset});
  });
  if (report) {
    seen.report = *report;
    EXPECT_EQ(seen.frames.size(), offsets.size());
  } else {
    EXPECT_TRUE(seen.frames.empty());
    seen.error = report.error().message;
    seen.code = report.error().code;
  }
  return seen;
}

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Number of the first line of programs/`source` that holds `text`.
inline uint32_t line_of(const std::string& source, const std::string& text) {
  const std::string all = content(std::string(kPrograms) + "/" + source);
  const size_t at = all.find(text);
  EXPECT_NE(at, std::string::npos) << source << ": " << text;
  if (at == std::string::npos) return 0;
  return static_cast<uint32_t>(1 +
                               std::count(all.begin(), all.begin() + static_cast<int>(at), '\n'));
}

inline void write_content(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace aon::symbols::test
