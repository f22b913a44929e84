#include "core/agent/followable.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/temporary_folder.h"

namespace aon::agent {
namespace {

Following with(std::vector<std::string> providers, std::vector<std::string> without = {}) {
  Options options;
  options.providers = std::move(providers);
  options.without = std::move(without);
  return following_of(options);
}

/// A child that runs sleep(1), or a copy of it, with one more variable in its environment.
class Sleeper {
 public:
  explicit Sleeper(const char* variable, const char* file = "/bin/sleep")
      : file_(file), pid_(::fork()) {
    if (pid_ == 0) {
      char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("60"), nullptr};
      char* const variables[] = {const_cast<char*>("A=1"), const_cast<char*>(variable), nullptr};
      ::execve(file_.c_str(), words, variables);
      ::_exit(1);
    }
    // exec() gives it a path first, then all else.
    for (int i = 0; i < 500 && (path() != program() || !is_asleep()); ++i) ::usleep(10'000);
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  std::string program() const { return std::filesystem::canonical(file_); }

 private:
  std::string path() const {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid_) + "/exe", ignored);
  }
  bool is_asleep() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    const std::string line(std::istreambuf_iterator<char>(file), {});
    return line.find(") S ") != std::string::npos;
  }
  std::string file_;
  pid_t pid_;
};

TEST(Followable, who_is_followed_depends_on_what_is_wanted) {
  EXPECT_EQ(with({}), Following::kBusy);
  EXPECT_EQ(with({}, {"mpi"}), Following::kAll);
  EXPECT_EQ(with({"perf"}), Following::kAll) << "no MPI";
  EXPECT_EQ(with({"mpi", "node", "nccl"}), Following::kNobody);
  EXPECT_EQ(with({"mpi", "process"}), Following::kBusy);
  EXPECT_EQ(with({"mpi", "/opt/provider.so"}), Following::kBusy) << "nobody knows what it does";
  EXPECT_EQ(with({}, {"perf", "sampling"}), Following::kBusy);
  EXPECT_EQ(with({}, {"perf", "sampling", "process"}), Following::kNobody);
}

TEST(Followable, a_program_has_the_path_that_it_runs) {
  const Sleeper sleeper("B=2");
  EXPECT_EQ(followable_program(sleeper.pid(), {}).program, sleeper.program());
}

TEST(Followable, an_agent_is_not) {
  const test::TemporaryFolder folder;
  const std::string program = folder.path("aon-agent");
  std::filesystem::copy_file("/bin/sleep", program);
  const Sleeper agent("B=2", program.c_str());
  EXPECT_EQ(followable_program(agent.pid(), {}).program, "");
}

TEST(Followable, what_is_left_alone_is_not) {
  const Sleeper sleeper("B=2");
  const std::vector<std::string> others{"/bin/none"};
  const std::vector<std::string> programs{"/bin/none", sleeper.program()};
  EXPECT_EQ(followable_program(sleeper.pid(), others).program, sleeper.program());
  EXPECT_FALSE(followable_program(sleeper.pid(), others).is_left_alone);
  const Followable listed = followable_program(sleeper.pid(), programs);
  EXPECT_TRUE(listed.is_left_alone) << "its name is told";
  EXPECT_EQ(listed.program, sleeper.program());
}

TEST(Followable, what_is_switched_off_is_not) {
  const Sleeper off("AON_DISABLE=1");
  EXPECT_EQ(followable_program(off.pid(), {}).program, "");
  const std::vector<std::string> programs{off.program()};
  EXPECT_FALSE(followable_program(off.pid(), programs).is_left_alone) << "nobody asked for it";
  const Sleeper on("AON_DISABLE=0");
  EXPECT_EQ(followable_program(on.pid(), {}).program, on.program());
}

TEST(Followable, what_another_agent_has_is_not) {
  const Sleeper sleeper("AON_SOCKET=/run/own");
  EXPECT_EQ(followable_program(sleeper.pid(), {}, "/run/other").program, "");
  EXPECT_EQ(followable_program(sleeper.pid(), {}, "/run/own").program, sleeper.program());
  EXPECT_EQ(followable_program(sleeper.pid(), {}).program, sleeper.program()) << "nobody knows";
}

/// Where addresses are not random, images of one program are alike.
bool has_random_addresses() {
  std::ifstream file("/proc/sys/kernel/randomize_va_space");
  int mode = 0;
  file >> mode;
  return mode != 0 && (::personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
}

TEST(Followable, an_image_lasts_until_the_next_exec) {
  if (!has_random_addresses()) GTEST_SKIP() << "no address randomisation";
  const Sleeper one("B=2");
  const Sleeper other("B=2");
  EXPECT_EQ(image_of(one.pid()), image_of(one.pid()));
  EXPECT_NE(image_of(one.pid()), image_of(other.pid())) << "the same program";
  EXPECT_EQ(image_of(0), 0u);
}

TEST(Followable, what_has_ended_is_not) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(followable_program(pid, {}).program, "");
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(followable_program(pid, {}).program, "");
}

TEST(Followable, pids_of_another_namespace_are_others) {
  EXPECT_TRUE(shares_pid_namespace(::getpid()));
  EXPECT_FALSE(shares_pid_namespace(0));
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    pid_t inner = 0;
    if (::unshare(CLONE_NEWPID) == 0) inner = ::fork();
    if (inner == 0 && ::getpid() == 1) ::pause();
    if (::write(ready[1], &inner, sizeof(inner)) != sizeof(inner)) ::_exit(1);
    ::pause();
  }
  pid_t inner = 0;
  ASSERT_EQ(::read(ready[0], &inner, sizeof(inner)), static_cast<ssize_t>(sizeof(inner)));
  if (inner > 0) {
    EXPECT_FALSE(shares_pid_namespace(inner));
    ::kill(inner, SIGKILL);
  }
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  if (inner <= 0) GTEST_SKIP() << "namespaces are not allowed here";
}

}  // namespace
}  // namespace aon::agent
