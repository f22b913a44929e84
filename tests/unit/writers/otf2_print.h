/// An archive of tests as otf2-print has it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/unit/writers/spool_fixture.h"

namespace aon::test {

/// All events, and errors.
inline std::string print_archive(const std::filesystem::path& job) {
  const std::string command = kOtf2Print + (job / "traces.otf2").string() + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> part;
  while (pipe != nullptr && fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << text;
  return text;
}

}  // namespace aon::test
