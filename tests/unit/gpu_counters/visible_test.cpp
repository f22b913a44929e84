#include "plugins/gpu_counters/visible.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace aon::gpu_counters {
namespace {

constexpr const char* kUuid = "GPU-11111100-1111-1111-1111-111111111111";

TEST(Visible, nothing_is_hidden_before_a_process_is_known) {
  EXPECT_FALSE(VisibleDevices().is_hidden(0, kUuid));
}

TEST(Visible, what_no_process_may_see_is_hidden) {
  VisibleDevices visible;
  visible.add("1,2");
  visible.add("2");
  EXPECT_TRUE(visible.is_hidden(0, kUuid));
  EXPECT_FALSE(visible.is_hidden(1, kUuid));
  EXPECT_FALSE(visible.is_hidden(2, kUuid));
  EXPECT_TRUE(visible.is_hidden(12, kUuid)) << "no part of a number";
}

TEST(Visible, a_uuid_or_how_it_begins_names_a_gpu) {
  VisibleDevices visible;
  visible.add("GPU-11111100");
  EXPECT_FALSE(visible.is_hidden(0, kUuid));
  EXPECT_TRUE(visible.is_hidden(1, "GPU-11111101-1111-1111-1111-111111111111"));
}

TEST(Visible, a_process_without_the_variable_sees_all) {
  VisibleDevices visible;
  visible.add("1");
  visible.add(nullptr);
  EXPECT_FALSE(visible.is_hidden(0, kUuid));
}

TEST(Visible, an_empty_variable_hides_all) {
  VisibleDevices visible;
  visible.add("");
  EXPECT_TRUE(visible.is_hidden(0, kUuid));
}

TEST(Visible, so_many_names_that_they_are_not_kept_hide_nothing) {
  VisibleDevices visible;
  std::string list;
  for (int i = 0; i < 5000; ++i) list += std::to_string(i + 10) + ",";
  visible.add(list.c_str());
  EXPECT_FALSE(visible.is_hidden(0, kUuid));
}

TEST(Visible, the_variable_is_that_of_the_process) {
  const pid_t child = fork();
  if (child == 0) {
    char* const variables[] = {const_cast<char*>("A=1"),
                               const_cast<char*>("CUDA_VISIBLE_DEVICES=3"), nullptr};
    char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("60"), nullptr};
    execve("/bin/sleep", words, variables);
    _exit(1);
  }
  VisibleDevices visible;
  for (int i = 0; i < 1000 && !visible.is_hidden(0, kUuid); ++i) {
    visible = VisibleDevices();
    visible.add_process(child);  // until it is sleep
    usleep(1000);
  }
  EXPECT_TRUE(visible.is_hidden(0, kUuid));
  EXPECT_FALSE(visible.is_hidden(3, kUuid));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Visible, a_process_that_is_gone_tells_nothing) {
  VisibleDevices visible;
  visible.add_process(0x7ffffff0);
  EXPECT_FALSE(visible.is_hidden(0, kUuid));
}

}  // namespace
}  // namespace aon::gpu_counters
