#include "core/agent/unseen.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace aon::agent {
namespace {

std::string written(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / (name + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Unseen, an_ordinary_program_is_dynamic) {
  EXPECT_EQ(linkage_of("/proc/self/exe"), Linkage::kDynamic);
}

TEST(Unseen, nothing_is_said_of_what_is_no_program) {
  EXPECT_EQ(linkage_of("/nowhere"), Linkage::kUnknown);
  EXPECT_EQ(linkage_of("/tmp"), Linkage::kUnknown);
  EXPECT_EQ(linkage_of(""), Linkage::kUnknown);
  const std::string script = written("aon-script-", "#!/bin/sh\nexit 0\n");
  EXPECT_EQ(linkage_of(script), Linkage::kUnknown);
  std::filesystem::remove(script);
}

TEST(Unseen, a_cut_file_is_read_without_harm) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string bytes(1 << 16, '\0');
  self.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (const size_t byte_count : {size_t{4}, size_t{64}, size_t{100}, size_t{4096}, bytes.size()}) {
    const std::string cut = written("aon-cut-", bytes.substr(0, byte_count));
    EXPECT_NE(linkage_of(cut), Linkage::kOwnMpi) << byte_count;
    std::filesystem::remove(cut);
  }
}

}  // namespace
}  // namespace aon::agent
