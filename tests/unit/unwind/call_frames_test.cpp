// Call frame information that was changed at random: reading it ends, in rules or in none.
#include "core/unwind/call_frames.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace aon::unwind {
namespace {

TEST(CallFrames, survives_changed_bytes) {
  const char* count = std::getenv("AON_TEST_MUTATIONS");
  const int mutations = count != nullptr ? std::atoi(count) : 100;
  const std::string own = std::filesystem::canonical("/proc/self/exe");
  const Result<ElfFile> file = ElfFile::open(own);
  ASSERT_TRUE(file.has_value());
  const ElfSection* text = file->section(".text");
  std::ifstream stream(own, std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(stream), {}};
  const std::filesystem::path copy =
      std::filesystem::temp_directory_path() / ("aon-unwind-" + std::to_string(getpid()));
  std::mt19937_64 dice(20240229);
  uint64_t with_rules = 0;
  for (int turn = 0; turn < mutations; ++turn) {
    std::string bytes = original;
    for (const char* name : {".eh_frame", ".eh_frame_hdr"}) {
      const ElfSection* section = file->section(name);
      ASSERT_NE(section, nullptr);
      for (uint64_t changes = dice() % 64; changes > 0; --changes)
        bytes[section->header.sh_offset + dice() % section->header.sh_size] =
            static_cast<char>(dice());
    }
    std::ofstream(copy, std::ios::binary) << bytes;
    Result<CallFrames> frames = CallFrames::open(copy, "");
    if (!frames) continue;
    for (uint64_t at = 0; at < text->header.sh_size; at += 97) {
      const FrameRules* rules = frames->find(text->header.sh_offset + at);
      if (rules != nullptr) ++with_rules;
    }
  }
  std::filesystem::remove(copy);
  EXPECT_GT(with_rules, 0u);
}

}  // namespace
}  // namespace aon::unwind
