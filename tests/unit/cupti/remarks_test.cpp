#include "plugins/cupti/remarks.h"

#include <gtest/gtest.h>

#include <string>

namespace aon::cupti {
namespace {

std::string reasons(const Remarks& remarks) {
  char text[Remarks::kMaxText];
  const size_t bytes = remarks.write_reasons(text);
  EXPECT_EQ(bytes, std::string(text).size());
  return text;
}

std::string remedies(const Remarks& remarks) {
  char text[Remarks::kMaxText];
  remarks.write_remedies(text);
  return text;
}

TEST(Remarks, say_nothing_of_what_is_on) {
  Remarks remarks;
  remarks.set(Remark::kStart, ProviderState::kOn, "", "");
  EXPECT_EQ(remarks.state(), ProviderState::kOn);
  EXPECT_EQ(reasons(remarks), "");
}

TEST(Remarks, one_does_not_hide_another) {
  Remarks remarks;
  remarks.set(Remark::kMissing, ProviderState::kDegraded, "10 dropped", "more memory");
  remarks.set(Remark::kStart, ProviderState::kDegraded, "not recorded: copies", "newer");
  remarks.set(Remark::kPause, ProviderState::kDegraded, "paused", "");
  EXPECT_EQ(reasons(remarks), "not recorded: copies; paused; 10 dropped");
  EXPECT_EQ(remedies(remarks), "newer; more memory");
  EXPECT_EQ(remarks.state(), ProviderState::kDegraded);
}

TEST(Remarks, the_same_one_is_replaced) {
  Remarks remarks;
  remarks.set(Remark::kMissing, ProviderState::kDegraded, "10 dropped", "");
  remarks.set(Remark::kMissing, ProviderState::kDegraded, "20 dropped", "");
  EXPECT_EQ(reasons(remarks), "20 dropped");
  remarks.set(Remark::kMissing, ProviderState::kOn, "", "");
  EXPECT_EQ(remarks.state(), ProviderState::kOn);
}

TEST(Remarks, the_worst_state_counts_and_a_remedy_stands_once) {
  Remarks remarks;
  remarks.set(Remark::kEnd, ProviderState::kDegraded, "a", "restart");
  remarks.set(Remark::kStart, ProviderState::kOff, "b", "restart");
  EXPECT_EQ(remarks.state(), ProviderState::kOff);
  EXPECT_EQ(remedies(remarks), "restart");
}

TEST(Remarks, long_ones_are_cut) {
  Remarks remarks;
  const std::string text(500, 'x');
  for (uint32_t i = 0; i < kRemarkCount; ++i) {
    remarks.set(static_cast<Remark>(i), ProviderState::kDegraded, text.c_str(), text.c_str());
  }
  EXPECT_EQ(reasons(remarks).size(), Remarks::kMaxText - 1);
}

}  // namespace
}  // namespace aon::cupti
