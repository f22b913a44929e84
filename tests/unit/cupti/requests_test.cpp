#include "plugins/cupti/requests.h"

#include <gtest/gtest.h>

namespace aon::cupti {
namespace {

Requests* g_asked;
void nobody() {}
void take_only() { g_asked->take(); }
void do_it() {
  g_asked->take();
  EXPECT_TRUE(g_asked->answer(true));
}
void refuse() {
  g_asked->take();
  EXPECT_TRUE(g_asked->answer(false));
}

class RequestsTest : public testing::Test {
 protected:
  void SetUp() override { g_asked = &requests_; }
  Requests requests_;
};

TEST_F(RequestsTest, are_answered) {
  EXPECT_EQ(requests_.take(), Request::kNone);
  EXPECT_EQ(requests_.ask(Request::kPause, 1000, do_it), Answer::kDone);
  EXPECT_EQ(requests_.ask(Request::kResume, 1000, refuse), Answer::kRefused);
  EXPECT_EQ(requests_.take(), Request::kNone);
}

TEST_F(RequestsTest, that_nobody_took_in_time_are_withdrawn) {
  EXPECT_EQ(requests_.ask(Request::kPause, 2, nobody), Answer::kNone);
  EXPECT_EQ(requests_.take(), Request::kNone) << "it was refused, and must not happen later";
  EXPECT_EQ(requests_.ask(Request::kResume, 1000, do_it), Answer::kDone);
}

TEST_F(RequestsTest, that_take_too_long_leave_the_way_to_the_next) {
  EXPECT_EQ(requests_.ask(Request::kPause, 2, take_only), Answer::kNone);
  EXPECT_EQ(requests_.ask(Request::kStop, 2, nobody), Answer::kNone) << "it is still at work";
  EXPECT_FALSE(requests_.answer(true)) << "nobody waits";
  EXPECT_EQ(requests_.ask(Request::kStop, 1000, do_it), Answer::kDone);
}

}  // namespace
}  // namespace aon::cupti
