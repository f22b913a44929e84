#include <aon/provider_config.h>
#include <gtest/gtest.h>

namespace aon {
namespace {

TEST(ProviderConfig, gives_the_value_of_a_line) {
  EXPECT_EQ(config_value("a=1\nevents=x,y\nb=2\n", "events"), "x,y");
  EXPECT_EQ(config_value("events=a=b", "events"), "a=b");
  EXPECT_EQ(config_value("events=\nb=2\n", "events"), "");
  EXPECT_EQ(config_value("a=1\n", "events"), "");
  EXPECT_EQ(config_value("", "events"), "");
}

TEST(ProviderConfig, tells_keys_that_end_or_begin_alike_apart) {
  EXPECT_EQ(config_value("x-a=1\na=2", "a"), "2");
  EXPECT_EQ(config_value("ab=1\na=2\n", "a"), "2");
  EXPECT_EQ(config_value("x=a=1\n", "a"), "");
  EXPECT_EQ(config_value("a\n", "a"), "");
}

}  // namespace
}  // namespace aon
