// Buffers kept by AON_RECORD_FIXTURE, read back: names stand at the addresses of the records.
#include "plugins/cupti/fixture.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "plugins/cupti/parser.h"
#include "tests/unit/cupti/made_record.h"

namespace aon::cupti {
namespace {

namespace fs = std::filesystem;

/// A fixture in memory.
struct Kept {
  uint32_t version = 0;
  std::map<uint64_t, std::string> names;
  std::vector<std::vector<uint8_t>> buffers;
};

template <class T>
T value_at(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Kept read_fixture(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Kept kept;
  if (bytes.size() < 16 || bytes.compare(0, 8, Fixture::kMagic, 8) != 0) return kept;
  kept.version = value_at<uint32_t>(bytes, 8);
  for (size_t at = 16; at + 8 <= bytes.size();) {
    const auto part = static_cast<Fixture::Part>(value_at<uint32_t>(bytes, at));
    const size_t size = value_at<uint32_t>(bytes, at + 4);
    at += 8;
    if (at + size > bytes.size()) break;
    if (part == Fixture::Part::kName) {
      kept.names[value_at<uint64_t>(bytes, at)] = bytes.data() + at + 8;
    } else {
      kept.buffers.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
    }
    at += (size + 7) / 8 * 8;
  }
  return kept;
}

class FixtureTest : public testing::Test {
 protected:
  FixtureTest() {
    std::string text = (fs::temp_directory_path() / "aon-fixture-XXXXXX").string();
    folder_ = mkdtemp(text.data());
    setenv("AON_RECORD_FIXTURE", folder_.c_str(), 1);
  }
  ~FixtureTest() override {
    unsetenv("AON_RECORD_FIXTURE");
    fs::remove_all(folder_);
  }
  fs::path file() const { return folder_ / ("cupti-" + std::to_string(getpid()) + ".bin"); }

  fs::path folder_;
};

TEST_F(FixtureTest, what_was_kept_is_parsed_as_it_was) {
  const char* const name = "_Z4gemmPfi";
  const test::MadeRecord kernel = test::made_kernel(name, 1000, 3000);
  Fixture fixture;
  fixture.open_for_process(130001);
  ASSERT_TRUE(fixture.is_open());
  fixture.add_name(name);
  fixture.add_name(name);
  fixture.add_buffer(kernel.data(), kernel.bytes().size());
  const Kept kept = read_fixture(file());
  EXPECT_EQ(kept.version, 130001u);
  ASSERT_EQ(kept.buffers.size(), 1u);
  ASSERT_EQ(kept.names.size(), 1u);
  Work work;
  ASSERT_EQ(parse(kept.buffers[0].data(), quirks_of(kept.version), &work), Parsed::kWork);
  EXPECT_EQ(kept.names.at(reinterpret_cast<uintptr_t>(work.name)), name);
  EXPECT_EQ(work.end_ns, 3000u);
}

TEST_F(FixtureTest, parts_of_any_length_are_told_apart) {
  const std::vector<uint8_t> odd(13, 7);
  Fixture fixture;
  fixture.open_for_process(27);
  for (size_t size = 1; size <= odd.size(); ++size) fixture.add_buffer(odd.data(), size);
  const Kept kept = read_fixture(file());
  ASSERT_EQ(kept.buffers.size(), odd.size());
  for (size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(kept.buffers[i].size(), i + 1);
}

TEST_F(FixtureTest, a_file_that_is_there_stays) {
  std::ofstream(file()) << "mine";
  Fixture fixture;
  fixture.open_for_process(27);
  EXPECT_FALSE(fixture.is_open());
  EXPECT_EQ(fs::file_size(file()), 4u);
}

TEST_F(FixtureTest, without_the_variable_there_is_none) {
  unsetenv("AON_RECORD_FIXTURE");
  Fixture fixture;
  fixture.open_for_process(27);
  EXPECT_FALSE(fixture.is_open());
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace aon::cupti
