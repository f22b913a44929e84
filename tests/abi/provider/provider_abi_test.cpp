#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/provider/loader.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kProviderFolder;  // the build writes it

namespace aon::provider {
namespace {

using testing::HasSubstr;

Result<Provider> load(const std::string& name) {
  const std::filesystem::path folder = kProviderFolder;
  return Provider::load(folder / ("libabi_provider_" + name + ".so"), AON_HOST_NODE, folder);
}

std::string refusal(const std::string& name) {
  const Result<Provider> loaded = load(name);
  return loaded ? "" : loaded.error().message;
}

TEST(ProviderAbi, works_from_c11_and_cpp20) {
  for (const char* name : {"good_c", "good_cpp"}) {
    Result<Provider> loaded = load(name);
    ASSERT_TRUE(loaded) << loaded.error().message;
    aon_core core;
    EXPECT_TRUE(loaded->start(&core, test::fake_core_api(), "")) << name;
    loaded->tick(1);
    loaded->stop();
  }
}

TEST(ProviderAbi, accepts_a_table_that_has_grown) {
  Result<Provider> loaded = load("future_size");
  ASSERT_TRUE(loaded) << loaded.error().message;
  aon_core core;
  ASSERT_TRUE(loaded->start(&core, test::fake_core_api(), ""));
  loaded->tick(1);
  loaded->stop();
  ASSERT_EQ(core.samples.size(), 1u);
  EXPECT_EQ(core.samples[0].value, 42.0);
}

TEST(ProviderAbi, refuses_bad_providers_by_the_rule_they_break) {
  EXPECT_THAT(refusal("bad_abi"), HasSubstr("ABI 2, this core speaks 1"));
  EXPECT_THAT(refusal("short_table"), HasSubstr("has 80 bytes"));
  EXPECT_THAT(refusal("process_only"), HasSubstr("runs in the profiled process"));
  EXPECT_THAT(refusal("no_symbol"), HasSubstr("exports no symbol aon_provider_v1"));
}

TEST(ProviderAbi, keeps_the_reason_of_a_start_that_failed) {
  Result<Provider> loaded = load("start_fails");
  ASSERT_TRUE(loaded) << loaded.error().message;
  aon_core core;
  const Status status = loaded->start(&core, test::fake_core_api(), "");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_EQ(core.states.at(AON_PROCESS_NODE).reason, "no such device");
  EXPECT_EQ(core.states.at(AON_PROCESS_NODE).remedy, "buy one");
}

}  // namespace
}  // namespace aon::provider
