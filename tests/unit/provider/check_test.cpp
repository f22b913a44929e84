#include "core/provider/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace aon::provider {
namespace {

using testing::HasSubstr;

constexpr aon_provider_api kGood = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 0,
    .name = "good",
    .description = "a test",
    .start = [](aon_core*, const aon_core_api*, aon_host, const char*,
                aon_provider**) { return AON_OK; },
    .flush = nullptr,
    .stop = [](aon_provider*) {},
    .process_started = nullptr,
    .process_ended = nullptr,
    .tick = nullptr,
    .message = nullptr,
};

std::string table_error(const aon_provider_api* table, aon_host host = AON_HOST_NODE) {
  Message message;
  const bool good = check_table(table, host, &message);
  EXPECT_EQ(good, message.empty());
  return message.text;
}

TEST(ProviderTable, is_accepted_when_complete) {
  EXPECT_EQ(table_error(&kGood), "");
  aon_provider_api future = kGood;
  future.size += 64;
  EXPECT_EQ(table_error(&future), "");
  aon_provider_api both = kGood;
  both.hosts = AON_HOST_NODE | AON_HOST_PROCESS;
  EXPECT_EQ(table_error(&both), "");
  EXPECT_EQ(table_error(&both, AON_HOST_PROCESS), "");
}

TEST(ProviderTable, is_refused_with_the_rule_that_it_breaks) {
  EXPECT_THAT(table_error(nullptr), HasSubstr("no symbol aon_provider_v1"));
  aon_provider_api table = kGood;
  table.abi = AON_PROVIDER_ABI + 1;
  EXPECT_THAT(table_error(&table), HasSubstr("provider ABI 2, this core speaks 1"));
  table = kGood;
  table.size = AON_PROVIDER_SIZE_V1 - 8;
  EXPECT_THAT(table_error(&table), HasSubstr("has 80 bytes, ABI 1 needs 88"));
  EXPECT_THAT(table_error(&kGood, AON_HOST_PROCESS),
              HasSubstr("runs on the node (aon-agent), not"));
  table = kGood;
  table.hosts = 4;
  EXPECT_THAT(table_error(&table), HasSubstr("runs nowhere"));
  for (const char* name : {"", "Upper", "a/b", "a name", "name-of-thirty-two-characters-xxx"}) {
    table = kGood;
    table.name = name;
    EXPECT_THAT(table_error(&table), HasSubstr("name must be")) << name;
  }
  table = kGood;
  table.stop = nullptr;
  EXPECT_THAT(table_error(&table), HasSubstr("must not be null"));
}

TEST(ProviderTable, is_not_read_beyond_its_size) {
  // Only abi and size are there; a sanitizer or the page boundary tells a read of the rest.
  const uint32_t tiny[2] = {AON_PROVIDER_ABI, 8};
  EXPECT_THAT(table_error(reinterpret_cast<const aon_provider_api*>(tiny)), HasSubstr("8 bytes"));
}

class ProviderFile : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_) << "x";
    chmod(file_.c_str(), 0644);
  }

  std::string error(const std::filesystem::path& path, const char* own_folder = "/nonexistent") {
    Message message;
    const bool good = check_file(path.c_str(), own_folder, &message);
    EXPECT_EQ(good, message.empty());
    return message.text;
  }

  test::TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
  const std::filesystem::path file_ = folder_ / "libaon-provider-x.so";
};

TEST_F(ProviderFile, of_ours_is_accepted_also_below_a_sticky_folder) {
  EXPECT_EQ(error(file_), "");
}

TEST_F(ProviderFile, must_have_an_absolute_path_and_exist) {
  EXPECT_THAT(error("libaon-provider-x.so"), HasSubstr("not an absolute path"));
  EXPECT_THAT(error(folder_ / "missing.so"), HasSubstr("No such file"));
  EXPECT_THAT(error(folder_), HasSubstr("not a file"));
}

TEST_F(ProviderFile, that_others_may_write_is_refused) {
  chmod(file_.c_str(), 0666);
  EXPECT_THAT(error(file_), HasSubstr("mode 0666"));
  chmod(file_.c_str(), 0664);
  EXPECT_THAT(error(file_), HasSubstr("chmod go-w"));
}

TEST_F(ProviderFile, in_a_folder_that_others_may_write_is_refused) {
  chmod(folder_.c_str(), 0777);
  EXPECT_THAT(error(file_), HasSubstr("mode 0777"));
  EXPECT_EQ(error(file_, folder_.c_str()), "") << "the installation's own folder is trusted";
}

TEST_F(ProviderFile, behind_a_link_is_judged_by_where_it_leads) {
  chmod(file_.c_str(), 0666);
  const std::filesystem::path link = folder_ / "link.so";
  std::filesystem::create_symlink(file_, link);
  EXPECT_THAT(error(link), HasSubstr("mode 0666"));
}

TEST_F(ProviderFile, of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a file of another user";
  ASSERT_EQ(chown(file_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(error(file_), HasSubstr("uid 12345"));
}

}  // namespace
}  // namespace aon::provider
