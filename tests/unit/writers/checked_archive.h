/// An archive of tests as otf2-print and the reader of tests/e2e see it, which find no fault in it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/assemble.h"

extern const char* const kSourceFolder;  // the build writes it

namespace aon::test {

struct CommandResult {
  int status;
  std::string output;
};

inline CommandResult run(const std::string& command) {
  CommandResult result{-1, {}};
  FILE* pipe = popen(("ulimit -f 200000; " + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  size_t got = 0;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    result.output.append(buffer.data(), got);
  }
  result.status = pclose(pipe);
  return result;
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Assembles and lets all checkers look at the archive; returns what otf2-print prints.
inline std::string checked_archive(const std::filesystem::path& job,
                                   const writers::AssembleOptions& options = {}) {
  const Result<writers::AssembleReport> report = writers::assemble(job, options);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  const std::string anchor = (job / "traces.otf2").string();
  const CommandResult silent = run(std::string(kOtf2Print) + ("--silent -Werror " + anchor));
  EXPECT_EQ(silent.status, 0) << silent.output;
  const CommandResult checked = run(std::string("timeout 60 /usr/bin/python3 ") + kSourceFolder +
                                    "/tests/e2e/check_otf2.py " + anchor);
  EXPECT_EQ(checked.status, 0) << checked.output;
  const CommandResult printed = run(std::string(kOtf2Print) + ("-A " + anchor));
  EXPECT_EQ(printed.output.find("INVALID"), std::string::npos);
  return printed.output;
}

}  // namespace aon::test
