#include "core/agent/stack_walker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/unique_fd.h"

namespace aon::agent {
namespace {

constexpr uint32_t kProcess = 4;
constexpr uint64_t kNow = 5'000'000'000;

/// A copy of this thread's registers and stack, as perf makes it of an interrupted one.
struct Copy {
  aon_stack_copy registers = {};
  std::vector<uint8_t> bytes;
};

#if defined(__x86_64__)
[[gnu::noinline]] Copy copy_here() {
  Copy copy;
  aon_stack_copy& r = copy.registers;
  uint64_t here = 0;
  asm volatile("lea 0(%%rip), %0" : "=r"(here));
  asm volatile("mov %%rbx, %0" : "=m"(r.bx));
  asm volatile("mov %%rbp, %0" : "=m"(r.bp));
  asm volatile("mov %%rsp, %0" : "=m"(r.sp));
  asm volatile("mov %%r12, %0" : "=m"(r.r12));
  asm volatile("mov %%r13, %0" : "=m"(r.r13));
  asm volatile("mov %%r14, %0" : "=m"(r.r14));
  asm volatile("mov %%r15, %0" : "=m"(r.r15));
  r.ip = here;
  copy.bytes.resize(4096);
  // By the kernel, which asks nobody whose variables these are (AddressSanitizer would).
  const UniqueFd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  if (pread(memory.get(), copy.bytes.data(), copy.bytes.size(), static_cast<off_t>(r.sp)) <= 0)
    return copy;
  r.bytes = copy.bytes.data();
  r.byte_count = copy.bytes.size();
  return copy;
}

/// Room above, so that the copy lies within the stack.
[[gnu::noinline]] uint64_t caller_of_copy(Copy* copy) {
  volatile char room[8192];
  room[0] = 1;
  *copy = copy_here();
  asm volatile("" ::"r"(room));
  return reinterpret_cast<uint64_t>(__builtin_return_address(0));
}

TEST(StackWalker, follows_the_stack_of_a_process_of_the_node) {
  Copy copy;
  caller_of_copy(&copy);
  StackWalker walker;
  walker.add_process(kProcess, getpid());
  std::vector<uint64_t> frames(16);
  const uint32_t count = walker.unwind(kProcess, copy.registers, frames, kNow);
  ASSERT_GE(count, 2u);
  EXPECT_EQ(frames[0], copy.registers.ip);
  const auto caller = reinterpret_cast<uint64_t>(&caller_of_copy);
  EXPECT_GT(frames[1], caller);
  EXPECT_LT(frames[1], caller + 4096);
}

TEST(StackWalker, fills_no_more_frames_than_there_is_room_for) {
  Copy copy;
  caller_of_copy(&copy);
  StackWalker walker;
  walker.add_process(kProcess, getpid());
  std::vector<uint64_t> frames(1);
  EXPECT_EQ(walker.unwind(kProcess, copy.registers, frames, kNow), 1u);
}
#endif

TEST(StackWalker, knows_nothing_of_other_processes) {
  StackWalker walker;
  walker.add_process(kProcess, getpid());
  walker.remove_process(kProcess);
  aon_stack_copy copy = {};
  std::vector<uint64_t> frames(16);
  EXPECT_EQ(walker.unwind(kProcess, copy, frames, kNow), 0u);
  EXPECT_EQ(walker.unwind(kProcess + 1, copy, frames, kNow), 0u);
}

TEST(StackWalker, takes_code_that_lies_in_files) {
  const auto maps = parse_executable_maps(
      "00400000-00401000 r--p 00000000 08:01 12 /bin/a b\n"
      "00401000-00402000 r-xp 00001000 08:01 12                         /bin/a b\n"
      "7fff0000-7fff1000 r-xp 00000000 00:00 0                          [vdso]\n"
      "7ffe0000-7ffe1000 r-xp 00000000 00:00 0 \n"
      "nonsense\n",
      "/proc/7/root");
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].path, "/proc/7/root/bin/a b");
  EXPECT_EQ(maps[0].begin, 0x401000u);
  EXPECT_EQ(maps[0].end, 0x402000u);
  EXPECT_EQ(maps[0].file_offset, 0x1000u);
}

}  // namespace
}  // namespace aon::agent
