#include "core/agent/followable_looks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <set>

#include "core/agent/followable.h"

namespace aon::agent {
namespace {

using Answer = FollowableLooks::Answer;

constexpr uint64_t kNowNs = 5'000'000'000;

class Looks : public testing::Test {
 protected:
  /// Of this process, whose image there is.
  static FollowableLooks::Question about(uint32_t number) { return {number, ::getpid(), 0}; }
  std::vector<Answer> wait_for(size_t count) {
    std::vector<Answer> answers;
    for (int i = 0; i < 1000 && answers.size() < count; ++i) {
      ::usleep(10'000);
      for (Answer& answer : looks_.take()) answers.push_back(std::move(answer));
    }
    return answers;
  }
  static Followable find(pid_t /*pid*/) { return {"/bin/one"}; }

  FollowableLooks looks_;
  uint64_t image_ = image_of(::getpid());
};

TEST_F(Looks, have_an_answer_to_each_question) {
  looks_.ask({about(3), about(5)}, find, kNowNs);
  const std::vector<Answer> answers = wait_for(2);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].number, 3u);
  EXPECT_EQ(answers[1].number, 5u);
  EXPECT_EQ(answers[1].found.program, "/bin/one");
  EXPECT_EQ(answers[1].image, image_);
}

TEST_F(Looks, leave_alone_what_was_refused_until_it_is_another_program) {
  looks_.ask({{3, ::getpid(), image_}, {4, ::getpid(), image_ + 1}, {5, 0, 0}}, find, kNowNs);
  const std::vector<Answer> answers = wait_for(3);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].image, image_);
  EXPECT_EQ(answers[0].found.program, "");
  EXPECT_EQ(answers[1].image, image_);
  EXPECT_EQ(answers[1].found.program, "/bin/one");
  EXPECT_EQ(answers[2].image, 0u) << "there is no such process";
  EXPECT_EQ(answers[2].found.program, "");
}

TEST_F(Looks, tell_nothing_of_what_has_become_another_program) {
  int word[2];
  ASSERT_EQ(::pipe(word), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(word[0], &byte, 1) == 1) ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  const auto become_another = [child, fd = word[1]](pid_t) {
    const uint64_t before = image_of(child);
    if (::write(fd, "w", 1) != 1) return Followable{"/bin/no"};
    for (int i = 0; i < 1000 && image_of(child) == before; ++i) ::usleep(10'000);
    return Followable{"/bin/one"};
  };
  looks_.ask({{3, child, 0}}, become_another, kNowNs);
  const std::vector<Answer> answers = wait_for(1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int fd : word) ::close(fd);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].image, 0u);
  EXPECT_EQ(answers[0].found.program, "");
}

/// As where a program holds its memory's lock.
TEST_F(Looks, that_hang_are_not_waited_for_and_hold_up_no_others) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  const auto hang = [ended](pid_t) {
    ended.wait();
    return Followable{"/bin/late"};
  };
  looks_.ask({about(0)}, hang, kNowNs);
  looks_.ask({about(0), about(1)}, find, kNowNs);
  std::vector<Answer> answers = wait_for(1);
  ASSERT_EQ(answers.size(), 1u) << "the first one is asked already";
  EXPECT_EQ(answers[0].number, 1u);
  for (uint32_t i = 2; i <= kMostLookThreads; ++i) looks_.ask({about(i)}, hang, kNowNs);
  looks_.ask({about(77)}, find, kNowNs + 1);  // no thread is left
  EXPECT_TRUE(looks_.late(kNowNs + kLateLookNs - 1).empty());
  EXPECT_EQ(looks_.late(kNowNs + kLateLookNs), (std::vector<uint32_t>{0, 2, 3, 4}));
  EXPECT_EQ(looks_.late(kNowNs + kLateLookNs + 1), (std::vector<uint32_t>{0, 2, 3, 4, 77}));
  end.set_value();
  answers = wait_for(kMostLookThreads + 1);
  EXPECT_EQ(answers.size(), kMostLookThreads + 1) << "one that ends takes what waits";
  for (const Answer& answer : answers)
    EXPECT_EQ(answer.found.program, answer.number == 77 ? "/bin/one" : "/bin/late");
  EXPECT_TRUE(looks_.take().empty());
  EXPECT_TRUE(looks_.late(kNowNs + 2 * kLateLookNs).empty());
}

/// Ranks that compute are due together.
TEST_F(Looks, that_hang_leave_those_that_were_asked_with_them_to_others) {
  std::promise<void> end;
  const auto is_first = std::make_shared<std::atomic<bool>>(true);
  const auto hang_once = [is_first, ended = end.get_future().share()](pid_t) {
    if (is_first->exchange(false)) ended.wait();
    return Followable{"/bin/one"};
  };
  looks_.ask({about(0), about(1), about(2)}, hang_once, kNowNs);
  for (int i = 0; i < 1000 && is_first->load(); ++i) ::usleep(10'000);
  looks_.ask({about(1)}, find, kNowNs);  // due again
  std::set<uint32_t> numbers;
  for (const Answer& answer : wait_for(2)) numbers.insert(answer.number);
  EXPECT_EQ(numbers, (std::set<uint32_t>{1, 2}));
  end.set_value();
  const std::vector<Answer> last = wait_for(1);
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].number, 0u);
}

TEST_F(Looks, that_hang_may_outlive_who_asked) {
  std::promise<void> end;
  auto looks = std::make_unique<FollowableLooks>();
  const auto begun = std::make_shared<std::promise<void>>();
  looks->ask(
      {about(0)},
      [begun, ended = end.get_future().share()](pid_t) {
        begun->set_value();
        ended.wait();
        return Followable{};
      },
      kNowNs);
  begun->get_future().wait();
  looks.reset();
  end.set_value();
}

}  // namespace
}  // namespace aon::agent
