#include "core/provider/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/folder_fixture.h"

namespace aon::provider {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ProviderNames : public test::FolderFixture {
 protected:
  ProviderNames() {
    for (const char* name : {"libaon-mpi.so", "libaon-provider-perf.so", "libaon-provider-mine.so",
                             "libaon-provider-.so", "libaon.so", "libaon-provider-x.so.1"})
      std::ofstream(path(name)) << "x";
  }
};

TEST_F(ProviderNames, are_those_of_the_files) {
  EXPECT_THAT(installed_names(folder_, provider_folder(folder_)),
              ElementsAre("mine", "mpi", "perf"));
  std::filesystem::create_directories(path("aon/providers"));
  EXPECT_EQ(provider_folder(folder_), path("aon/providers"));
  EXPECT_EQ(library_folder(path("aon/providers")), folder_);
  EXPECT_THAT(installed_names(folder_, provider_folder(folder_)), ElementsAre("mpi"));
}

TEST_F(ProviderNames, are_checked_against_what_is_installed) {
  const std::vector<std::string> installed{"mpi", "perf"};
  EXPECT_TRUE(check_names({{"mpi"}, {"perf"}}, installed).has_value());
  EXPECT_TRUE(check_names({{path("libaon-provider-mine.so")}, {}}, installed).has_value());
  const Status unknown = check_names({{}, {"perf", "pref"}}, installed);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message,
            "--without: 'pref' is not the name of a provider; installed are: mpi, perf");
  const Status missing = check_names({{"nccl"}, {}}, installed);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message,
            "--providers: 'nccl' is not installed here; installed are: mpi, perf");
  EXPECT_TRUE(check_names({{}, {"nccl"}}, installed).has_value()) << "nothing to leave out";
  EXPECT_THAT(check_names({{path("none.so")}, {}}, installed).error().message,
              HasSubstr("cannot read"));
}

TEST_F(ProviderNames, of_the_nodes_service_read_the_node_alone) {
  for (const char* name : {"libaon-provider-energy.so", "libaon-provider-process.so"})
    std::ofstream(path(name)) << "x";
  EXPECT_TRUE(check_node_names({"energy", "mine"}, folder_).has_value());
  const auto message = [&](const char* name) {
    return check_node_names({"energy", name}, folder_).error().message;
  };
  const std::string those = "; those that do: energy, mine";
  EXPECT_EQ(message("pref"), "--providers: 'pref' is not the name of a provider" + those);
  EXPECT_EQ(message("membw"), "--providers: 'membw' is not installed here" + those);
  for (const char* name : {"perf", "process", "node", "example", "mpi", "nvml"}) {
    EXPECT_EQ(message(name),
              "--providers: '" + std::string(name) + "' does not read the node alone" + those);
  }
}

TEST(ProviderSelection, says_why_a_provider_is_off) {
  const Selection all;
  EXPECT_TRUE(is_wanted(all, "perf"));
  EXPECT_FALSE(is_wanted(all, "example"));
  EXPECT_FALSE(exclusion(all, "example").has_value()) << "it is off without being told";
  const Selection without{{}, {"perf", "example"}};
  EXPECT_EQ(exclusion(without, "perf")->reason, "excluded by --without");
  EXPECT_TRUE(exclusion(without, "example").has_value());
  EXPECT_FALSE(exclusion(without, "mpi").has_value());
  const Selection only{{"perf"}, {}};
  EXPECT_EQ(exclusion(only, "mpi")->reason, "not in --providers");
  EXPECT_EQ(exclusion(only, "mpi")->remedy, "add mpi to --providers");
  EXPECT_FALSE(is_wanted({{"perf"}, {"perf"}}, "perf"));
}

}  // namespace
}  // namespace aon::provider
