#include "core/agent/provider_call.h"

#include <gtest/gtest.h>

namespace aon::agent {
namespace {

TEST(ProviderCall, that_was_told_not_to_return_is_told_to_have_returned) {
  ProviderCall call;
  int told_count = 0;
  const auto tell = [&] { ++told_count; };
  {
    const ProviderCall::Scope scope(&call, "slow", "tick()");
    call.tell_held(*call.running(), tell);
    EXPECT_TRUE(call.take_returned().empty()) << "it runs still";
  }
  EXPECT_EQ(told_count, 1);
  const std::vector<ProviderCall::Running> returned = call.take_returned();
  ASSERT_EQ(returned.size(), 1u);
  EXPECT_EQ(returned[0].provider, "slow");
  EXPECT_STREQ(returned[0].function, "tick()");
  EXPECT_TRUE(call.take_returned().empty()) << "once";
  call.tell_held(returned[0], tell);
  {
    const ProviderCall::Scope scope(&call, "other", "tick()");
    call.tell_held(returned[0], tell);
  }
  EXPECT_EQ(told_count, 1) << "it has returned before it was said";
  EXPECT_TRUE(call.take_returned().empty());
}

}  // namespace
}  // namespace aon::agent
