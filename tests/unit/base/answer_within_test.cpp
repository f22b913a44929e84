#include "core/base/answer_within.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

namespace aon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong(60'000);

TEST(AnswerWithin, is_what_was_answered) {
  EXPECT_EQ(answer_within(kLong, [] { return std::string("an answer"); }), "an answer");
  EXPECT_THROW(answer_within(kLong, []() -> int { throw std::runtime_error("none"); }),
               std::runtime_error);
}

TEST(AnswerWithin, nobody_waits_for_one_that_does_not_come) {
  const auto is_released = std::make_shared<std::atomic<bool>>(false);
  const auto is_over = std::make_shared<std::promise<void>>();
  auto over = is_over->get_future();
  const auto answer = answer_within(milliseconds(1), [is_released, is_over] {
    is_released->wait(false);
    is_over->set_value_at_thread_exit();
    return 1;
  });
  EXPECT_FALSE(answer.has_value());
  is_released->store(true);
  is_released->notify_all();
  EXPECT_EQ(over.wait_for(kLong), std::future_status::ready) << "it goes on by itself";
}

}  // namespace
}  // namespace aon
