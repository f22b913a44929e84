#include "core/base/lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/base/containers.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

class LeaseFile : public test::FolderFixture {};

TEST_F(LeaseFile, has_one_owner) {
  auto held = Lease::take(path("l"));
  ASSERT_TRUE(held.has_value()) << held.error().message;
  EXPECT_TRUE(held->beat());
  const auto second = Lease::take(path("l"));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Code::kBusy);
  EXPECT_EQ(read_lease(path("l"))->pid, getpid());
  EXPECT_TRUE(read_lease(path("l"))->is_alive);
}

TEST_F(LeaseFile, goes_away_with_its_owner) {
  { ASSERT_TRUE(Lease::take(path("l")).has_value()); }
  EXPECT_FALSE(read_lease(path("l")).has_value());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_),
                          std::filesystem::directory_iterator()),
            0);
}

TEST_F(LeaseFile, of_a_killed_owner_is_taken_over) {
  const pid_t pid = fork();
  if (pid == 0) {
    auto lease = Lease::take(path("l"));
    kill(getpid(), SIGKILL);
  }
  waitpid(pid, nullptr, 0);
  ASSERT_TRUE(read_lease(path("l")).has_value());
  EXPECT_FALSE(read_lease(path("l"))->is_alive);
  EXPECT_TRUE(Lease::take(path("l")).has_value());
}

TEST_F(LeaseFile, removes_what_killed_takers_left_beside_it) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  const std::string mark = path("l") + "." + host_of_pids() + ".";
  const std::string of_the_dead = mark + std::to_string(pid) + ".0";
  const std::string of_the_living = mark + std::to_string(getppid()) + ".0";
  const std::string of_another_node = path("l") + ".elsewhere.1.0";
  for (const std::string& file : {of_the_dead, of_the_living, of_another_node})
    std::ofstream(file) << "text\n";
  ASSERT_TRUE(Lease::take(path("l")).has_value());
  EXPECT_NE(access(of_the_dead.c_str(), F_OK), 0);
  EXPECT_EQ(access(of_the_living.c_str(), F_OK), 0);
  EXPECT_EQ(access(of_another_node.c_str(), F_OK), 0);
  timespec old[2];
  clock_gettime(CLOCK_REALTIME, &old[0]);
  old[0].tv_sec -= kLeaseDeadSeconds + 5;
  old[1] = old[0];
  ASSERT_EQ(utimensat(AT_FDCWD, of_another_node.c_str(), old, 0), 0);
  ASSERT_TRUE(Lease::take(path("l")).has_value());
  EXPECT_NE(access(of_another_node.c_str(), F_OK), 0);
}

TEST_F(LeaseFile, of_another_node_lives_while_it_is_touched) {
  std::ofstream(path("l")) << "elsewhere 12 34 token\n";
  EXPECT_TRUE(read_lease(path("l"))->is_alive);
  EXPECT_FALSE(Lease::take(path("l")).has_value());
  timespec old[2];
  clock_gettime(CLOCK_REALTIME, &old[0]);
  old[0].tv_sec -= kLeaseDeadSeconds + 5;
  old[1] = old[0];
  ASSERT_EQ(utimensat(AT_FDCWD, path("l").c_str(), old, 0), 0);
  EXPECT_FALSE(read_lease(path("l"))->is_alive);
  auto lease = Lease::take(path("l"));
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_EQ(read_lease(path("l"))->pid, getpid());
}

TEST_F(LeaseFile, of_another_pid_namespace_is_not_judged_by_a_process_id_of_ours) {
  const std::string own = " " + std::to_string(getpid()) + " " +
                          std::to_string(process_start_time_ticks(getpid())) + " token\n";
  std::ofstream(path("dead")) << local_host_name() << "@1" << own;
  const bool sees_all = host_of_pids() == local_host_name();
  EXPECT_NE(read_lease(path("dead"))->is_alive, sees_all) << "no process has that namespace";
  std::ofstream(path("elsewhere")) << "elsewhere@1 12 34 token\n";
  EXPECT_TRUE(read_lease(path("elsewhere"))->is_alive) << "counts by its age";
  EXPECT_EQ(read_lease(path("elsewhere"))->host, "elsewhere");
}

/// A process of another user, as root can be one: its namespace is not to be seen.
TEST_F(LeaseFile, of_another_users_process_in_a_pid_namespace_counts_by_its_age) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  std::ofstream(path("l")) << local_host_name() << "@1 7 " << process_start_time_ticks(getpid())
                           << " token\n";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    const auto owner = read_lease(path("l"));
    _exit(owner && owner->is_alive ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(LeaseFile, that_is_damaged_counts_by_its_age) {
  std::ofstream(path("l")) << "nonsense";
  EXPECT_FALSE(Lease::take(path("l")).has_value());
}

TEST_F(LeaseFile, notices_a_new_owner) {
  auto lease = Lease::take(path("l"));
  ASSERT_TRUE(lease.has_value());
  std::ofstream(path("l")) << "elsewhere 12 34 token\n";
  EXPECT_FALSE(lease->beat());
  lease->release();
  EXPECT_TRUE(read_lease(path("l")).has_value()) << "it is not ours to remove";
}

TEST_F(LeaseFile, cannot_be_taken_without_a_folder) {
  const auto lease = Lease::take(path("none/l"));
  ASSERT_FALSE(lease.has_value());
  EXPECT_EQ(lease.error().code, Code::kIo);
}

}  // namespace
}  // namespace aon::launcher
