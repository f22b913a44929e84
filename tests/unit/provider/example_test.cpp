#include <gtest/gtest.h>

#include <filesystem>

#include "core/provider/loader.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kExampleProvider;  // the build writes it

namespace aon::provider {
namespace {

TEST(Example, samples_the_load_of_the_node) {
  const std::filesystem::path path = kExampleProvider;
  Result<Provider> loaded = Provider::load(path, AON_HOST_NODE, path.parent_path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  Provider& example = *loaded;
  EXPECT_STREQ(example.name(), "example");
  EXPECT_EQ(provider_path(path.parent_path(), "example"), path);
  aon_core core;
  ASSERT_TRUE(example.start(&core, test::fake_core_api(), ""));
  EXPECT_EQ(core.states.at(AON_PROCESS_NODE).state, AON_STATE_ON);
  example.tick(11);
  example.tick(12);
  example.stop();
  example.tick(13);
  ASSERT_EQ(core.samples.size(), 2u);
  EXPECT_EQ(core.samples[0].metric, "load");
  EXPECT_EQ(core.samples[0].process, AON_PROCESS_NODE);
  EXPECT_EQ(core.samples[1].ticks, 12u);
  EXPECT_GE(core.samples[0].value, 0.0);
}

TEST(Example, is_refused_in_the_profiled_process) {
  const std::filesystem::path path = kExampleProvider;
  const Result<Provider> loaded = Provider::load(path, AON_HOST_PROCESS, path.parent_path());
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("runs on the node (aon-agent)"), std::string::npos);
}

}  // namespace
}  // namespace aon::provider
