#include "tools/process_look.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.h"

namespace aon::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
constexpr milliseconds kLimit{5000};

constexpr Wanted kWanted = {[](std::string_view file) { return file.starts_with("libwanted"); },
                            [](std::string_view process) { return process == "holder"; }};

/// A folder that looks like /proc.
class ProcessLookTest : public testing::Test {
 protected:
  std::string path(pid_t pid, const std::string& file) const {
    return proc_ + "/" + std::to_string(pid) + "/" + file;
  }
  void add(pid_t pid, const std::string& name, const std::string& maps, bool has_memory = true) {
    std::filesystem::create_directory(proc_ + "/" + std::to_string(pid));
    std::ofstream(path(pid, "status")) << "Name:\t" << name << "\nUid:\t7\t7\t7\t7\n"
                                       << (has_memory ? "VmSize:\t  100 kB\n" : "");
    std::ofstream(path(pid, "maps")) << maps;
    std::ofstream(path(pid, "cmdline")) << name << '\0' << "--with" << '\0';
  }
  /// A file whose reading never ends, as that of a process which stands still.
  void let_stand_still(pid_t pid) {
    std::filesystem::remove(path(pid, "maps"));
    ASSERT_EQ(mkfifo(path(pid, "maps").c_str(), 0600), 0);
  }

  test::TemporaryFolder folder_;
  const std::string proc_ = folder_.path();
};

std::string line(const std::string& file) {
  return "7f00-7f01 r-xp 00000000 08:01 42    /opt/some folder/" + file + "\n";
}

TEST_F(ProcessLookTest, names_processes_with_wanted_libraries_once_each) {
  add(12, "python3", line("libwanted.so.13") + line("libwanted.so.13") + line("libc.so.6"));
  add(9, "app", line("libwanted.so.12 (deleted)") + line("libwanted-a.so") + "7f-8f rw-p 0 0 0\n");
  add(10, "sh", line("libc.so.6"));
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  ASSERT_EQ(look.processes.size(), 2u);
  EXPECT_EQ(look.processes[0].pid, 9);
  EXPECT_EQ(look.processes[0].libraries,
            (std::vector<std::string>{"libwanted-a.so", "libwanted.so.12"}));
  EXPECT_EQ(look.processes[1].name, "python3");
  EXPECT_EQ(look.processes[1].user, 7u);
  EXPECT_EQ(look.processes[1].libraries, std::vector<std::string>{"libwanted.so.13"});
  EXPECT_EQ(look.processes[1].arguments, "");
  EXPECT_EQ(look.read_count, 3u);
  EXPECT_EQ(look.closed_count + look.unread_count, 0u);
}

TEST_F(ProcessLookTest, says_nothing_that_a_terminal_would_obey) {
  add(12, "a\x7f\xc2\x9b", line("libwanted\xc2\x9b.so"));
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  ASSERT_EQ(look.processes.size(), 1u);
  EXPECT_EQ(look.processes[0].name, "a???");
  EXPECT_EQ(look.processes[0].libraries, std::vector<std::string>{"libwanted??.so"});
}

TEST_F(ProcessLookTest, knows_wanted_processes_by_name_with_their_arguments) {
  add(5, "holder", "");
  add(6, "holders", "");
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  ASSERT_EQ(look.processes.size(), 1u);
  EXPECT_EQ(look.processes[0].pid, 5);
  EXPECT_EQ(look.processes[0].arguments, "holder --with ");
}

TEST_F(ProcessLookTest, leaves_out_what_has_no_memory_or_is_no_process) {
  add(2, "kthreadd", line("libwanted.so"), false);
  std::filesystem::create_directory(proc_ + "/sys");
  std::filesystem::create_directory(proc_ + "/77");  // it has just ended
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  EXPECT_TRUE(look.processes.empty());
  EXPECT_EQ(look.read_count, 0u);
}

TEST_F(ProcessLookTest, goes_on_behind_processes_that_stand_still) {
  for (const pid_t pid : {3, 4, 5, 6, 7}) add(pid, "app", line("libwanted.so"));
  let_stand_still(4);
  let_stand_still(6);
  const auto begin = steady_clock::now();
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  EXPECT_LT(steady_clock::now() - begin, kLimit);
  EXPECT_EQ(look.stuck, (std::vector<pid_t>{6, 4}));
  ASSERT_EQ(look.processes.size(), 3u);
  EXPECT_EQ(look.processes[0].pid, 3);
  EXPECT_EQ(look.processes[2].pid, 7);
  EXPECT_EQ(look.read_count, 3u);
}

TEST_F(ProcessLookTest, counts_what_there_was_no_time_for) {
  for (pid_t pid = 1; pid <= 40; ++pid) {
    add(pid, "app", line("libwanted.so"));
    let_stand_still(pid);
  }
  const auto begin = steady_clock::now();
  const ProcessLook look = look_at_processes(proc_, kWanted, milliseconds(1200));
  EXPECT_LT(steady_clock::now() - begin, kLimit);
  EXPECT_GE(look.stuck.size(), 1u);
  EXPECT_EQ(look.stuck.size() + look.unread_count, 40u);
}

TEST_F(ProcessLookTest, reads_a_thousand_processes_within_the_limit) {
  constexpr pid_t kCount = 1000;
  for (pid_t pid = 1; pid <= kCount; ++pid) add(pid, "app", line("libwanted.so"));
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  EXPECT_EQ(look.processes.size(), static_cast<size_t>(kCount));
  EXPECT_TRUE(look.stuck.empty());
}

TEST_F(ProcessLookTest, counts_what_this_user_may_not_read) {
  constexpr uid_t kNobody = 65534;  // root may read everything
  add(3, "app", line("libwanted.so"));
  add(4, "holder", "");
  for (const pid_t pid : {3, 4}) ASSERT_EQ(chmod(path(pid, "maps").c_str(), 0), 0);
  ASSERT_EQ(chmod(proc_.c_str(), 0755), 0);
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const ProcessLook look = look_at_processes(proc_, kWanted, kLimit);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(look.closed_count, 2u);
  EXPECT_EQ(look.read_count, 0u);
  ASSERT_EQ(look.processes.size(), 1u) << "by its name";
  EXPECT_EQ(look.processes[0].pid, 4);
}

TEST_F(ProcessLookTest, finds_nothing_where_there_is_no_proc) {
  const ProcessLook look = look_at_processes(proc_ + "/none", kWanted, kLimit);
  EXPECT_TRUE(look.processes.empty());
  EXPECT_EQ(look.read_count, 0u);
}

TEST(ProcessLook, sees_this_process_and_its_libraries) {
  constexpr Wanted kCLibrary = {[](std::string_view file) { return file == "libc.so.6"; },
                                [](std::string_view) { return false; }};
  const ProcessLook look = look_at_processes("/proc", kCLibrary, kLimit);
  bool is_there = false;
  for (const SeenProcess& process : look.processes) is_there |= process.pid == getpid();
  EXPECT_TRUE(is_there);
}

}  // namespace
}  // namespace aon::tools
