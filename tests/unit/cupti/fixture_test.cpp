// Buffers kept by AON_RECORD_FIXTURE, read back: names stand at the addresses of the records.
#include "plugins/cupti/fixture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plugins/cupti/parser.h"
#include "tests/unit/cupti/kept_fixture.h"
#include "tests/unit/cupti/made_record.h"
#include "tests/unit/temporary_folder.h"

namespace aon::cupti {
namespace {

namespace fs = std::filesystem;
using test::KeptFixture;
using test::read_fixture;

class FixtureTest : public testing::Test {
 protected:
  fs::path file() const {
    char node[65] = {};
    gethostname(node, sizeof node - 1);
    return folder_ / ("cupti-" + std::string(node) + "-" + std::to_string(getpid()) + ".bin");
  }

  aon::test::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(FixtureTest, what_was_kept_is_parsed_as_it_was) {
  const char* const name = "_Z4gemmPfi";
  const test::MadeRecord kernel = test::made_kernel(name, 1000, 3000);
  Fixture fixture;
  fixture.open_for_process(folder_.c_str(), 130001);
  ASSERT_TRUE(fixture.is_open());
  fixture.add_name(name);
  fixture.add_name(name);
  fixture.add_buffer(kernel.data(), kernel.bytes().size());
  const KeptFixture kept = read_fixture(file());
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
  fixture.open_for_process(folder_.c_str(), 27);
  for (size_t size = 1; size <= odd.size(); ++size) fixture.add_buffer(odd.data(), size);
  const KeptFixture kept = read_fixture(file());
  ASSERT_EQ(kept.buffers.size(), odd.size());
  for (size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(kept.buffers[i].size(), i + 1);
}

TEST_F(FixtureTest, a_file_that_is_there_stays) {
  std::ofstream(file()) << "mine";
  Fixture fixture;
  fixture.open_for_process(folder_.c_str(), 27);
  EXPECT_FALSE(fixture.is_open());
  EXPECT_EQ(fs::file_size(file()), 4u);
}

TEST_F(FixtureTest, without_a_folder_there_is_none) {
  Fixture fixture;
  fixture.open_for_process("", 27);
  EXPECT_FALSE(fixture.is_open());
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace aon::cupti
