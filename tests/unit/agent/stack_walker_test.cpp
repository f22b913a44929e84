#include "core/agent/stack_walker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
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

/// push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret: a function of a compiler at run time.
constexpr uint8_t kMadeCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
constexpr size_t kMadeReturn = 6;
constexpr size_t kPageBytes = 4096;

[[gnu::noinline]] uint64_t copy_for_made_code(Copy* copy) {
  *copy = copy_here();
  return copy->registers.ip;
}

[[gnu::noinline]] void call_made_code(void* code, Copy* copy) {
  volatile char room[8192];
  room[0] = 1;
  reinterpret_cast<void (*)(Copy*, uint64_t(*)(Copy*))>(code)(copy, copy_for_made_code);
  asm volatile("" ::"r"(room));
}

TEST(StackWalker, passes_code_that_was_made_at_run_time) {
  void* code =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, kMadeCode, sizeof(kMadeCode));
  ASSERT_EQ(mprotect(code, kPageBytes, PROT_READ | PROT_EXEC), 0);
  Copy copy;
  call_made_code(code, &copy);
  StackWalker walker;
  walker.add_process(kProcess, getpid());
  std::vector<uint64_t> frames(16);
  const uint32_t count = walker.unwind(kProcess, copy.registers, frames, kNow);
  EXPECT_EQ(walker.place_of(kProcess, frames[2]).substr(0, 2), "0x") << "lies in no file";
  munmap(code, kPageBytes);
  ASSERT_GE(count, 4u);
  EXPECT_EQ(frames[2], reinterpret_cast<uint64_t>(code) + kMadeReturn);
  const auto caller = reinterpret_cast<uint64_t>(&call_made_code);
  EXPECT_GT(frames[3], caller);
  EXPECT_LT(frames[3], caller + kPageBytes);
}

TEST(StackWalker, says_once_whose_code_is_passed_by_frame_pointers) {
  char path[] = "/tmp/aon-walker-XXXXXX";
  const UniqueFd file(mkstemp(path));
  ASSERT_EQ(write(file.get(), kMadeCode, sizeof kMadeCode), ssize_t{sizeof kMadeCode});
  void* code = mmap(nullptr, kPageBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (code == MAP_FAILED) {
    unlink(path);
    GTEST_SKIP() << "/tmp is mounted noexec";
  }
  Copy copy;
  call_made_code(code, &copy);
  StackWalker walker;
  walker.add_process(kProcess, getpid());
  std::vector<uint64_t> frames(16);
  testing::internal::CaptureStderr();
  walker.unwind(kProcess, copy.registers, frames, kNow);
  const std::string told = testing::internal::GetCapturedStderr();
  testing::internal::CaptureStderr();
  EXPECT_GE(walker.unwind(kProcess, copy.registers, frames, kNow), 4u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(told.find(std::string(path) + ": is not an ELF file"), std::string::npos) << told;
  munmap(code, kPageBytes);
  unlink(path);
}
#endif

TEST(StackWalker, knows_which_file_a_mapping_is_of) {
  char path[] = "/tmp/aon-walker-XXXXXX";
  const UniqueFd file(mkstemp(path));
  ASSERT_EQ(ftruncate(file.get(), 8192), 0);
  void* code = mmap(nullptr, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (code == MAP_FAILED) {
    unlink(path);
    GTEST_SKIP() << "/tmp is mounted noexec";
  }
  struct stat status {};
  EXPECT_EQ(fstat(file.get(), &status), 0);
  size_t found = 0;
  for (const unwind::Mapping& mapping : executable_mappings(getpid())) {
    if (mapping.path != path) continue;
    ++found;
    EXPECT_EQ(mapping.file.inode, status.st_ino);
    EXPECT_EQ(mapping.file.device, status.st_dev);
    EXPECT_EQ(mapping.file.size_bytes, 8192u);
  }
  EXPECT_EQ(found, 1u);
  munmap(code, 8192);
  unlink(path);
}

TEST(StackWalker, knows_nothing_of_other_processes) {
  StackWalker walker;
  walker.add_process(kProcess, getpid());
  walker.remove_process(kProcess);
  aon_stack_copy copy = {};
  std::vector<uint64_t> frames(16);
  EXPECT_EQ(walker.unwind(kProcess, copy, frames, kNow), 0u);
  EXPECT_EQ(walker.unwind(kProcess + 1, copy, frames, kNow), 0u);
}

TEST(StackWalker, takes_code_that_lies_in_files_and_code_that_does_not) {
  const auto maps = parse_executable_maps(
      "00400000-00401000 r--p 00000000 08:01 12 /bin/a b\n"
      "00401000-00402000 r-xp 00001000 08:01 12                         /bin/a b\n"
      "7fff0000-7fff1000 r-xp 00000000 00:00 0                          [vdso]\n"
      "7ffe0000-7ffe1000 r-xp 00000000 00:00 0 \n"
      "nonsense\n",
      "/proc/7/root");
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_EQ(maps[2].path, "");
  EXPECT_EQ(maps[2].begin, 0x7ffe0000u);
  EXPECT_EQ(maps[0].path, "/proc/7/root/bin/a b");
  EXPECT_EQ(maps[0].begin, 0x401000u);
  EXPECT_EQ(maps[0].end, 0x402000u);
  EXPECT_EQ(maps[0].file_offset, 0x1000u);
}

}  // namespace
}  // namespace aon::agent
