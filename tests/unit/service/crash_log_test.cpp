#include "core/service/crash_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace aon::service {
namespace {

constexpr char kSegfault[] =
    "6,1042,86764301625,-;app[4711]: segfault at 8 ip 00007f63d05e132 sp 00007ffe1b05260 error 4 "
    "in "
    "libaon-mpi.so[1a2b,7f63d05e000+1000] likely on CPU 0 (core 0, socket 0)";

TEST(CrashLog, lines_of_the_kernel) {
  const auto crash = crash_in(kSegfault);
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->tid, 4711);
  EXPECT_EQ(place_text(crash->place), "libaon-mpi.so+0x1a2b");
  const auto trap = crash_in(
      "6,1,2,-;traps: app[12] trap invalid opcode ip:7f sp:7f error:0 in "
      "libnccl-profiler-aon.so[112d,7f+1000]");
  ASSERT_TRUE(trap);
  EXPECT_EQ(trap->tid, 12);
  EXPECT_EQ(place_text(trap->place), "libnccl-profiler-aon.so+0x112d");
  const auto old_kernel =
      crash_in("app[7]: segfault at 0 ip 0 sp 0 error 4 in libaon.so[7f0000+5000]");
  ASSERT_TRUE(old_kernel);
  EXPECT_EQ(place_text(old_kernel->place), "libaon.so+0x0");
}

TEST(CrashLog, lines_about_others) {
  for (const char* line :
       {"", "in", " in libaon.so[", "eth0: link is up in libaon.so[1,2+3]",
        "app[4711]: segfault at 8 ip 7f sp 7f error 4 in libc.so.6[1a2b,7f+1000]",
        "app[x]: segfault at 8 ip 7f sp 7f error 4 in libaon.so[1,2+3]",
        "app[-3]: segfault at 8 ip 7f sp 7f error 4 in libaon.so[1,2+3]",
        "app[4711]: segfault at 8 ip 7f sp 7f error 4"})
    EXPECT_FALSE(crash_in(line)) << line;
}

TEST(CrashLog, places_that_cannot_be) {
  for (const uint32_t place : {0u, 7u, 0x60000001u, 0xffffffffu}) EXPECT_EQ(place_text(place), "");
}

/// A name of a program is at most 15 characters of anything.
TEST(CrashLog, name_of_a_program_cannot_accuse) {
  // A file that is mapped: its name is behind " in ".
  EXPECT_FALSE(crash_in("a[9]: segfault at 8 ip 7f sp 7f error 4 in x[77] in libaon.so[1,2+3]"));
  EXPECT_FALSE(crash_in("a[9]: segfault at 8 ip 7f sp 7f error 4 in x in libaon.so[1,2+3]"));
  EXPECT_FALSE(crash_in(
      "traps: a[9] trap int3 ip:401136 sp:7ffce3b0e5d0 error:0 in x[77]: segfault at 8 ip 7 "
      "sp 7 error 4 in libaon.so[1,2+3][401000+1000]"));
  // A file that asks for an executable stack.
  for (const char* file : {"/srv/x", "/x"})
    EXPECT_FALSE(crash_in("process '" + std::string(file) +
                          "[77]: segfault at 8 ip 7 sp 7 error 4 in libaon.so[1,2+3]' started "
                          "with executable stack"))
        << file;
  const auto early =
      crash_in("x[77]: segfault[9]: segfault at 8 ip 7 sp 7 error 4 in libaon.so[1,2+3]");
  ASSERT_TRUE(early);
  EXPECT_EQ(early->tid, 9);
  const auto trap = crash_in("tra[9]: segfault at 8 ip 7 sp 7 error 4 in libaon.so[1,2+3]");
  EXPECT_TRUE(trap);
  EXPECT_FALSE(crash_in("in libaon.so[1][9]: segfault at 8 ip 7f sp 7f error 4 in app[1,2+3]"));
  const auto crash = crash_in("a[77] b[9]: segfault at 8 ip 7f sp 7f error 4 in libaon.so[1,2+3]");
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->tid, 9);
}

/// As /dev/kmsg writes a name in UTF-8.
TEST(CrashLog, name_of_a_program_may_be_in_any_language) {
  const auto crash = crash_in(
      "6,1,2,-;pr\\xc3\\xb6gr\\xc3\\xa4mm[9]: segfault at 8 ip 7 sp 7 error 4 in libaon.so[1,2+3]");
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->tid, 9);
  std::string longest;
  for (int i = 0; i < 5; ++i) longest += "\\xe2\\x82\\xac";
  EXPECT_TRUE(crash_in(longest + "[9]: segfault at 8 ip 7 sp 7 error 4 in libaon.so[1,2+3]"));
}

TEST(CrashLog, reads_what_came_since) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  CrashLog log{UniqueFd(ends[0])};
  const UniqueFd writer(ends[1]);
  EXPECT_TRUE(log.read().empty());
  const std::string text = std::string(kSegfault) + "\n Code: 00 00\n";
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(log.read().size(), 1u);
  EXPECT_TRUE(log.read().empty());
}

TEST(HiddenProcesses, are_those_of_the_proc_on_top) {
  const std::string open = "22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n";
  const std::string hidden = "23 22 0:21 / /proc rw - proc proc rw,gid=5,hidepid=invisible\n";
  EXPECT_FALSE(processes_are_hidden(open));
  EXPECT_TRUE(processes_are_hidden(open + hidden));
  EXPECT_FALSE(processes_are_hidden(hidden + open));
  for (const char* value : {"1", "2", "4", "noaccess", "ptraceable"})
    EXPECT_TRUE(
        processes_are_hidden("1 1 0:4 / /proc rw - proc p rw,hidepid=" + std::string(value)));
  for (const char* value : {"0", "off", "0,gid=1"})
    EXPECT_FALSE(
        processes_are_hidden("1 1 0:4 / /proc rw - proc p rw,hidepid=" + std::string(value)));
  EXPECT_FALSE(processes_are_hidden("1 1 0:4 / /srv/proc rw - proc p rw,hidepid=2"));
  EXPECT_FALSE(processes_are_hidden(""));
}

}  // namespace
}  // namespace aon::service
