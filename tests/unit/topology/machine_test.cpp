#include "core/topology/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/topology/topology.h"
#include "tests/unit/temporary_folder.h"

namespace aon::topology {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Machine : public testing::Test {
 protected:
  std::string take(const std::string& key) {
    const auto xml = kept_xml(folder_, key, [&]() -> Result<std::string> {
      ++discovery_count_;
      return answer_;
    });
    return xml ? *xml : xml.error().message;
  }
  fs::path only_file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
    return fs::directory_iterator(folder_)->path();
  }

  test::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  Result<std::string> answer_ = std::string("<topology>\n</topology>\n");
  int discovery_count_ = 0;
};

TEST_F(Machine, is_asked_for_once) {
  EXPECT_EQ(take("here"), *answer_);
  EXPECT_EQ(take("here"), *answer_);
  EXPECT_EQ(discovery_count_, 1);
}

TEST_F(Machine, is_asked_for_again_when_it_has_changed) {
  take("one GPU");
  answer_ = std::string("<topology gpus='2'/>\n");
  EXPECT_EQ(take("two GPUs"), *answer_);
  EXPECT_EQ(discovery_count_, 2);
}

TEST_F(Machine, that_cannot_be_found_out_is_an_error_and_not_kept) {
  answer_ = Error{Code::kUnavailable, "no hwloc"};
  EXPECT_EQ(take("here"), "no hwloc");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Machine, of_a_damaged_file_is_not_taken) {
  take("here");
  const fs::path file = only_file();
  const auto byte_count = fs::file_size(file);
  for (uintmax_t at = 0; at < byte_count; ++at) {
    std::fstream stream(file, std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(at));
    const int byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 1));
    stream.close();
    discovery_count_ = 0;
    EXPECT_EQ(take("here"), *answer_);
    ASSERT_EQ(discovery_count_, 1) << "byte " << at;
  }
  for (uintmax_t length = 0; length < byte_count; ++length) {
    fs::resize_file(file, length);
    discovery_count_ = 0;
    EXPECT_EQ(take("here"), *answer_);
    ASSERT_EQ(discovery_count_, 1) << length << " bytes";
  }
}

TEST_F(Machine, is_not_taken_from_a_link_or_pipe) {
  take("here");
  const fs::path file = only_file();
  fs::rename(file, folder_ + "/elsewhere");
  fs::create_symlink(folder_ + "/elsewhere", file);
  take("here");
  EXPECT_EQ(discovery_count_, 2);
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  take("here");
  EXPECT_EQ(discovery_count_, 3);
}

TEST_F(Machine, is_found_out_where_nothing_can_be_kept) {
  folder_ += "/missing";
  EXPECT_EQ(take("here"), *answer_);
  EXPECT_EQ(take("here"), *answer_);
  EXPECT_EQ(discovery_count_, 2);
}

TEST_F(Machine, has_a_bounded_number_of_files) {
  for (int i = 0; i < 200; ++i) take("container " + std::to_string(i));
  EXPECT_LE(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 16);
  EXPECT_EQ(discovery_count_, 200);
}

TEST_F(Machine, key_is_stable_and_has_the_cpus) {
  EXPECT_EQ(machine_key("0-1"), machine_key("0-1"));
  EXPECT_NE(machine_key("0-1"), machine_key("0"));
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(boot, boot_id);
  EXPECT_THAT(machine_key("0-1"), HasSubstr(boot_id));
}

TEST_F(Machine, is_hwlocs_without_the_jobs_control_group) {
  const auto first = machine_xml(folder_, "0-1");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_THAT(*first, Not(HasSubstr("LinuxCgroup")));
  const auto topology = Topology::from_xml(*first);
  ASSERT_TRUE(topology) << topology.error().message;
  const auto here = Topology::load();
  ASSERT_TRUE(here);
  EXPECT_EQ(topology->objects().size(), here->objects().size());
  const auto again = machine_xml(folder_, "0-1");
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *first);
  only_file();
}

TEST_F(Machine, of_hwlocs_variables_is_not_kept) {
  setenv("HWLOC_SYNTHETIC", "pack:2 core:3 pu:1", 1);
  const auto xml = machine_xml(folder_, "0-1");
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_TRUE(xml) << xml.error().message;
  EXPECT_EQ(Topology::from_xml(*xml)->objects().size(), 1u + 2 + 1 + 6 + 6);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace aon::topology
