#include "core/agent/programs_below.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/agent/busy_programs.h"
#include "core/agent/proc.h"

namespace aon::agent {
namespace {

/// A child that waits above one that computes.
class Above : public testing::Test {
 protected:
  void SetUp() override {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    above_ = ::fork();
    if (above_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile int i = 0;;) i = i + 1;
      }
      if (::write(told[1], &child, sizeof(child)) != sizeof(child)) ::_exit(1);
      ::pause();
      ::_exit(0);
    }
    ASSERT_EQ(::read(told[0], &busy_, sizeof(busy_)), static_cast<ssize_t>(sizeof(busy_)));
    for (const int fd : told) ::close(fd);
  }
  void TearDown() override {
    for (const pid_t pid : {busy_, above_}) ::kill(pid, SIGKILL);
    ::waitpid(above_, nullptr, 0);
  }
  void wait_until_it_has_computed() const {
    for (int i = 0; i < 3000 && proc::cpu_time_ns(busy_) < kBusyCpuNs; ++i) ::usleep(10'000);
    ASSERT_GE(proc::cpu_time_ns(busy_), kBusyCpuNs);
  }

  pid_t above_ = 0;
  pid_t busy_ = 0;
};

TEST_F(Above, finds_what_computes_below_it_at_any_depth) {
  const BelowQuestion question{{{::getpid(), 3}}, {}, {above_}};
  EXPECT_TRUE(find_busy_below(question).empty()) << "for less than a second";
  wait_until_it_has_computed();
  const std::vector<BusyBelow> found = find_busy_below(question);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, busy_);
  EXPECT_EQ(found[0].start_time_ticks, proc::start_time_ticks(busy_));
  EXPECT_EQ(found[0].number, 3u) << "of the one that it descends from";
  EXPECT_TRUE(find_busy_below({{{::getpid(), 3}}, {}, {busy_}}).empty()) << "it is known";
  EXPECT_TRUE(find_busy_below({{{::getpid(), 3}}, {above_}, {}}).empty()) << "of one that records";
  EXPECT_TRUE(find_busy_below({{{busy_, 3}}, {}, {}}).empty()) << "it is not below itself";
  const uint64_t start_ticks = proc::start_time_ticks(busy_);
  EXPECT_TRUE(find_busy_below({{{::getpid(), 3}}, {}, {}, {{busy_, start_ticks}}}).empty());
  EXPECT_EQ(find_busy_below({{{::getpid(), 3}}, {}, {}, {{busy_, start_ticks - 1}}}).size(), 1u)
      << "the pid was another's";
}

TEST_F(Above, has_its_answer_later) {
  wait_until_it_has_computed();
  ProgramsBelow below;
  EXPECT_TRUE(below.is_due(kBelowLookNs));
  EXPECT_FALSE(below.is_due(2 * kBelowLookNs - 1));
  below.ask({{{above_, 5}}, {}, {}});
  std::vector<BusyBelow> found;
  for (int i = 0; i < 1000 && found.empty(); ++i) {
    ::usleep(10'000);
    found = below.take();
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, busy_);
  EXPECT_TRUE(below.is_due(UINT64_C(1) << 50)) << "whatever the look cost";
  EXPECT_TRUE(below.take().empty());
}

TEST_F(Above, is_not_found_when_its_hello_was_refused) {
  wait_until_it_has_computed();
  ProgramsBelow below;
  // Many have gone since that were refused: no pid is as large.
  for (size_t i = 0; i < kMostRefused; ++i) below.refused(static_cast<pid_t>((1u << 22) + 1 + i));
  uint64_t now_ns = 0;
  const auto found_in_the_look = [&] {
    for (int i = 0; i < 1000 && !below.is_due(now_ns += UINT64_C(1) << 50); ++i) ::usleep(10'000);
    return !below.take().empty();
  };
  below.ask({{{above_, 5}}, {}, {}});
  EXPECT_TRUE(found_in_the_look());
  below.ask({{{above_, 5}}, {}, {}});
  below.refused(busy_);
  EXPECT_FALSE(found_in_the_look()) << "nor while it is asked";
  below.ask({{{above_, 5}}, {}, {}});
  EXPECT_FALSE(found_in_the_look());
}

}  // namespace
}  // namespace aon::agent
