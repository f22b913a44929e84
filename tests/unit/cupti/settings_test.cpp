#include "plugins/cupti/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace aon::cupti {
namespace {

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    for (const char* name : {"MODE", "API", "CALLS", "GRAPH", "MEMORY"}) set(name, "");
  }
  static void set(const char* name, const char* value) {
    setenv((std::string("AON_CUPTI_") + name).c_str(), value, 1);
  }
};

TEST_F(SettingsTest, have_defaults) {
  const Settings settings = read_settings();
  EXPECT_EQ(settings.mode, Mode::kExclusive);
  EXPECT_FALSE(settings.refuses_v2);
  EXPECT_EQ(settings.memory_mib, 256u);
  EXPECT_TRUE(settings.wanted.has_calls);
  EXPECT_FALSE(settings.wanted.has_graph_nodes);
  EXPECT_STREQ(settings.remark, "");
}

TEST_F(SettingsTest, are_taken) {
  set("MODE", "yield");
  set("API", "v1");
  set("CALLS", "0");
  set("GRAPH", "node");
  set("MEMORY", "1024");
  const Settings settings = read_settings();
  EXPECT_EQ(settings.mode, Mode::kYield);
  EXPECT_TRUE(settings.refuses_v2);
  EXPECT_EQ(settings.memory_mib, 1024u);
  EXPECT_FALSE(settings.wanted.has_calls);
  EXPECT_TRUE(settings.wanted.has_graph_nodes);
  EXPECT_STREQ(settings.remark, "");
}

TEST_F(SettingsTest, that_are_none_are_told_with_what_is_instead) {
  set("MODE", "Off");
  set("GRAPH", "nodes");
  const Settings settings = read_settings();
  EXPECT_EQ(settings.mode, Mode::kExclusive);
  EXPECT_FALSE(settings.wanted.has_graph_nodes);
  EXPECT_STREQ(settings.remark,
               "AON_CUPTI_MODE=Off is none of exclusive, yield, off: it is exclusive; "
               "AON_CUPTI_GRAPH=nodes is none of graph, node: it is graph");
}

TEST_F(SettingsTest, memory_is_a_number_within_limits) {
  for (const char* text : {"64", "64M", "64m", "64MB", "64MiB", "64 MB"}) {
    set("MEMORY", text);
    EXPECT_EQ(read_settings().memory_mib, 64u) << text;
    EXPECT_STREQ(read_settings().remark, "");
  }
  set("MEMORY", "1GiB");
  EXPECT_EQ(read_settings().memory_mib, 1024u);
  EXPECT_STREQ(read_settings().remark, "");
  const struct {
    const char* text;
    uint32_t memory_mib;
  } cases[] = {{"64GiB", 1024}, {"much", 256},
               {"64K", 256},    {"64MM", 256},
               {"M", 256},      {"1", 2},
               {"-5G", 2},      {"5000", 1024},
               {"0", 2},        {"9999999999999999999G", 1024}};
  for (const auto& one : cases) {
    set("MEMORY", one.text);
    const Settings settings = read_settings();
    EXPECT_EQ(settings.memory_mib, one.memory_mib) << one.text;
    EXPECT_EQ(settings.remark, std::string("AON_CUPTI_MEMORY=") + one.text +
                                   " is no number of MiB from 2 to 1024: it is " +
                                   std::to_string(one.memory_mib));
  }
}

TEST_F(SettingsTest, a_remark_on_all_of_them_fits) {
  const std::string text(300, 'x');
  for (const char* name : {"MODE", "API", "CALLS", "GRAPH", "MEMORY"}) set(name, text.c_str());
  const std::string remark = read_settings().remark;
  EXPECT_LT(remark.size(), Settings::kMaxRemark);
  EXPECT_NE(remark.find("AON_CUPTI_GRAPH"), std::string::npos) << remark;
}

}  // namespace
}  // namespace aon::cupti
