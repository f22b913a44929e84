#include "plugins/cupti/external_ids.h"

#include <gtest/gtest.h>

#include <string>

namespace aon::cupti {
namespace {

class ExternalIdsTest : public testing::Test {
 protected:
  bool add(uint32_t correlation, uint64_t id, ExternalKind kind = ExternalKind::kCustom0) {
    return ids_.add({kind, correlation, id});
  }
  /// "CUSTOM0=5 ...": what a record of the call gets.
  std::string join(uint32_t correlation) {
    std::string text;
    ids_.join(correlation, [&](const ExternalId& id) {
      EXPECT_EQ(id.correlation, correlation);
      text += text.empty() ? "" : " ";
      text += std::string(external_kind_name(id.kind)) + "=" + std::to_string(id.id);
    });
    return text;
  }

  ExternalIds ids_;
};

TEST_F(ExternalIdsTest, there_are_none_until_one_comes) {
  EXPECT_TRUE(ids_.is_empty());
  EXPECT_EQ(join(0), "");
  EXPECT_TRUE(add(7, 5));
  EXPECT_FALSE(ids_.is_empty());
  EXPECT_EQ(join(8), "");
  EXPECT_EQ(join(7 + ExternalIds::kEntries), "");
  EXPECT_EQ(join(7), "CUSTOM0=5");
  EXPECT_EQ(ids_.alone_count(true), 0u);
}

TEST_F(ExternalIdsTest, a_call_has_one_of_each_kind) {
  for (const auto kind : {ExternalKind::kCustom2, ExternalKind::kUnknown, ExternalKind::kOpenAcc,
                          ExternalKind::kCustom1, ExternalKind::kCustom0})
    EXPECT_TRUE(add(7, 10 + static_cast<uint32_t>(kind), kind));
  EXPECT_EQ(join(7), "UNKNOWN=11 OPENACC=12 CUSTOM0=13 CUSTOM1=14 CUSTOM2=15");
}

TEST_F(ExternalIdsTest, both_records_of_a_call_get_it_and_what_is_told_twice_counts_once) {
  EXPECT_TRUE(add(7, 5));
  EXPECT_EQ(join(7), "CUSTOM0=5") << "the driver's";
  EXPECT_FALSE(add(7, 5));
  EXPECT_EQ(join(7), "CUSTOM0=5") << "the runtime's";
  EXPECT_EQ(ids_.alone_count(true), 0u);
}

TEST_F(ExternalIdsTest, of_calls_without_a_record_are_counted) {
  EXPECT_TRUE(add(7, 5));
  EXPECT_TRUE(add(7, 6, ExternalKind::kCustom1));
  EXPECT_EQ(ids_.alone_count(false), 0u) << "it may come";
  EXPECT_EQ(ids_.alone_count(true), 2u);
  EXPECT_TRUE(add(7 + ExternalIds::kEntries, 5));
  EXPECT_EQ(ids_.alone_count(false), 2u);
  EXPECT_EQ(join(7), "");
  EXPECT_EQ(join(7 + ExternalIds::kEntries), "CUSTOM0=5");
  EXPECT_EQ(ids_.alone_count(true), 2u);
}

TEST_F(ExternalIdsTest, one_that_comes_behind_its_call_is_not_alone) {
  EXPECT_EQ(join(7), "");
  EXPECT_TRUE(add(7, 5));
  ids_.note_joined(7);
  EXPECT_EQ(ids_.alone_count(true), 0u);
}

TEST_F(ExternalIdsTest, a_call_that_has_the_number_of_one_of_long_ago_does_not_get_its_ids) {
  EXPECT_TRUE(add(7, 5));
  for (uint32_t i = 0; i < ExternalIds::kMostCalls; ++i) join(8);
  EXPECT_EQ(join(7), "");
  EXPECT_TRUE(add(7, 6));
  EXPECT_EQ(join(7), "CUSTOM0=6");
}

}  // namespace
}  // namespace aon::cupti
