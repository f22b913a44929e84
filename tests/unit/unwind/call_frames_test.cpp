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

/// As a program or library that is built anew in place while its processes run.
TEST(CallFrames, outlive_the_truncation_of_their_file) {
  const std::string own = std::filesystem::canonical("/proc/self/exe");
  const std::filesystem::path copy =
      std::filesystem::temp_directory_path() / ("aon-unwind-cut-" + std::to_string(getpid()));
  std::filesystem::copy_file(own, copy, std::filesystem::copy_options::overwrite_existing);
  Result<CallFrames> whole = CallFrames::open(own, "");
  Result<CallFrames> cut = CallFrames::open(copy, "");
  std::filesystem::resize_file(copy, 0);
  ASSERT_TRUE(whole && cut);
  const Result<ElfFile> file = ElfFile::open(own);
  ASSERT_TRUE(file.has_value());
  const GElf_Shdr& text = file->section(".text")->header;
  size_t with_rules = 0;
  for (uint64_t at = text.sh_offset; at < text.sh_offset + text.sh_size; at += 97) {
    const FrameRules* expected = whole->find(at);
    const FrameRules* found = cut->find(at);
    ASSERT_EQ(found == nullptr, expected == nullptr) << at;
    if (found == nullptr) continue;
    EXPECT_EQ(found->begin, expected->begin);
    EXPECT_EQ(found->cfa.size(), expected->cfa.size());
    ++with_rules;
  }
  EXPECT_GT(with_rules, 0u);
  EXPECT_FALSE(CallFrames::open(copy, "").has_value());
  std::filesystem::remove(copy);
}

TEST(CallFrames, are_not_copied_where_there_is_no_room) {
  const std::string own = std::filesystem::canonical("/proc/self/exe");
  const Result<CallFrames> whole = CallFrames::open(own, "");
  ASSERT_TRUE(whole.has_value());
  EXPECT_TRUE(CallFrames::open(own, "", whole->copied_bytes()).has_value());
  const Result<CallFrames> refused = CallFrames::open(own, "", whole->copied_bytes() - 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace aon::unwind
