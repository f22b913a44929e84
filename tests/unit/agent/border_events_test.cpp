#include "core/agent/border_events.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace aon::agent {
namespace {

constexpr char kCycles[] = "0/0/0/0/0/cycles";

perf_event_mmap_page g_page;
int g_opened = 0;
int g_closed = 0;

int open_page(perf_event_attr* /*attr*/, int /*group*/) { return 7 + g_opened++; }
int open_no_pmu(perf_event_attr* /*attr*/, int /*group*/) { return -ENOENT; }
int open_user_mode(perf_event_attr* attr, int group) {
  return attr->exclude_kernel != 0 ? open_page(attr, group) : -EACCES;
}
const perf_event_mmap_page* map_page(int /*fd*/) { return &g_page; }
void unmap_page(const perf_event_mmap_page* /*page*/) {}
void close_event(int /*fd*/) { ++g_closed; }

TEST(BorderEvents, are_of_the_hardware) {
  EXPECT_EQ(first_border_event({}), "");
  EXPECT_EQ(first_border_event({"1/2/0/0/0/page-faults", "not encoded"}), "");
  EXPECT_EQ(first_border_event({"1/2/0/0/0/page-faults", kCycles, "0/1/0/0/0/instructions"}),
            kCycles);
}

TEST(BorderEvents, are_tried_as_a_program_would) {
  runtime::CounterSource source{open_no_pmu, map_page, unmap_page, close_event, nullptr};
  EXPECT_EQ(try_border_event(kCycles, source), ENOENT);
  source.open = open_page;
  g_page.cap_user_rdpmc = 0;
  EXPECT_EQ(try_border_event(kCycles, source), runtime::kNotAllowed);
  g_page.cap_user_rdpmc = 1;
  EXPECT_EQ(try_border_event(kCycles, source), 0);
  source.open = open_user_mode;
  EXPECT_EQ(try_border_event(kCycles, source), 0) << "only the kernel is forbidden";
  EXPECT_EQ(g_closed, g_opened);
}

}  // namespace
}  // namespace aon::agent
