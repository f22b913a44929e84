// Chains of this program, compared with the unwinder of the C library's backtrace().
#include "core/unwind/unwinder.h"

#include <execinfo.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "tests/unit/folder_fixture.h"
#include "tests/unit/sanitizer.h"
#include "tests/unit/unwind/chain.h"

/// The handler below allocates on purpose: the thread is where its program has put it.
// NOLINTNEXTLINE(readability-identifier-naming): the sanitizer's name
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }

namespace aon::unwind {
namespace {

/// More than the chains below need on any CPU: a signal's frame holds the vector registers, 0.6 KiB
/// with SSE alone, 2.8 KiB with AVX-512, 11 KiB with AMX.
constexpr size_t kCopiedBytes = 32768;
constexpr int kDepth = 11;

/// What a sample would hold, taken by a signal handler; and what backtrace() says.
struct Sample {
  Registers registers;
  std::vector<uint8_t> stack = std::vector<uint8_t>(kCopiedBytes);
  uint64_t stack_begin = 0;
  void* expected[64];
  int expected_count = 0;
  bool is_copied = false;

  StackCopy copy(size_t bytes = kCopiedBytes) const { return {stack_begin, stack.data(), bytes}; }
};

Sample* taken = nullptr;

uint64_t stack_end() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t bytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(begin) + bytes;
}

void take(const ucontext_t* context) {
  const greg_t* values = context->uc_mcontext.gregs;
  const std::pair<int, int> numbers[] = {{kBx, REG_RBX},  {kBp, REG_RBP},  {kSp, REG_RSP},
                                         {kR12, REG_R12}, {kR13, REG_R13}, {kR14, REG_R14},
                                         {kR15, REG_R15}, {kIp, REG_RIP}};
  for (const auto& [number, place] : numbers)
    taken->registers.set(number, static_cast<uint64_t>(values[place]));
  taken->stack_begin = static_cast<uint64_t>(values[REG_RSP]);
  const size_t bytes = std::min<size_t>(kCopiedBytes, stack_end() - taken->stack_begin);
  // Not memcpy: the address sanitizer forbids what lies between variables.
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  const ssize_t got =
      pread(memory, taken->stack.data(), bytes, static_cast<off_t>(taken->stack_begin));
  taken->is_copied = got == static_cast<ssize_t>(bytes);
  close(memory);
  taken->expected_count = backtrace(taken->expected, 64);
}

void on_signal(int, siginfo_t*, void* context) { take(static_cast<ucontext_t*>(context)); }

/// Takes the sample where the signal hit.
Sample sample_of(void (*last)()) {
  Sample sample;
  taken = &sample;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);
  test::descend(kDepth, last);
  signal(SIGUSR1, SIG_DFL);
  taken = nullptr;
  EXPECT_TRUE(sample.is_copied);
  return sample;
}

void raise_signal() { raise(SIGUSR1); }

std::vector<Mapping> own_mappings() {
  std::vector<Mapping> mappings;
  FILE* file = std::fopen("/proc/self/maps", "re");
  char line[4096];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    unsigned long long begin = 0, end = 0, offset = 0;
    char rights[8] = "", path[3072] = "";
    if (std::sscanf(line, "%llx-%llx %7s %llx %*s %*s %3071s", &begin, &end, rights, &offset,
                    path) >= 4 &&
        rights[2] == 'x')
      mappings.push_back({begin, end, offset, path, {}, {}});
  }
  std::fclose(file);
  return mappings;
}

/// The part of backtrace()'s chain from the interrupted instruction on.
std::vector<uint64_t> expected(const Sample& sample) {
  const auto* begin = sample.expected;
  const auto* end = begin + sample.expected_count;
  const auto* at = std::find(begin, end, reinterpret_cast<void*>(*sample.registers.get(kIp)));
  std::vector<uint64_t> addresses;
  for (; at != end; ++at) addresses.push_back(reinterpret_cast<uint64_t>(*at));
  return addresses;
}

std::vector<uint64_t> addresses(const Chain& chain) {
  std::vector<uint64_t> found;
  for (const ChainEntry& entry : chain.entries) found.push_back(entry.address);
  return found;
}

TEST(Unwinder, gives_the_chain_of_code_without_frame_pointers) {
  const Sample sample = sample_of(raise_signal);
  Unwinder unwinder;
  const Chain chain = unwinder.unwind(sample.registers, sample.copy(), own_mappings());
  ASSERT_GT(expected(sample).size(), size_t{kDepth});
  EXPECT_EQ(addresses(chain), expected(sample));
  EXPECT_EQ(chain.end, End::kOutermost);
  EXPECT_FALSE(chain.entries[0].is_return_address);
  EXPECT_TRUE(chain.entries[1].is_return_address);
}

void on_inner_signal(int, siginfo_t*, void*) { raise(SIGUSR1); }

void raise_inner_signal() {
  struct sigaction action {};
  action.sa_sigaction = on_inner_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR2, &action, nullptr);
  raise(SIGUSR2);
  signal(SIGUSR2, SIG_DFL);
}

TEST(Unwinder, passes_a_signal_handler) {
#if defined(AON_TEST_IS_SANITIZED) && defined(__clang__)
  GTEST_SKIP() << "ThreadSanitizer delivers a signal in a handler when that has ended";
#endif
  const Sample sample = sample_of(raise_inner_signal);
  Unwinder unwinder;
  const Chain chain = unwinder.unwind(sample.registers, sample.copy(), own_mappings());
  EXPECT_EQ(addresses(chain), expected(sample));
  EXPECT_EQ(std::count_if(chain.entries.begin(), chain.entries.end(),
                          [](const ChainEntry& entry) { return !entry.is_return_address; }),
            2)
      << "the instruction that each signal hit";
}

TEST(Unwinder, ends_where_the_copy_of_the_stack_ends) {
  const Sample sample = sample_of(raise_signal);
  const std::vector<uint64_t> whole = expected(sample);
  Unwinder unwinder;
  size_t longest = 0;
  for (size_t bytes = 0; bytes < 2048; bytes += 8) {
    const Chain chain = unwinder.unwind(sample.registers, sample.copy(bytes), own_mappings());
    const std::vector<uint64_t> part = addresses(chain);
    ASSERT_LE(part.size(), whole.size());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << bytes;
    EXPECT_EQ(chain.end, part.size() < whole.size() ? End::kStackEnds : End::kOutermost) << bytes;
    EXPECT_GE(part.size(), longest);
    longest = std::max(longest, part.size());
  }
  EXPECT_GT(longest, size_t{kDepth} / 2);
}

TEST(Unwinder, gives_no_more_frames_than_asked_for) {
  const Sample sample = sample_of(raise_signal);
  const Chain chain = Unwinder().unwind(sample.registers, sample.copy(), own_mappings(), 3);
  EXPECT_EQ(chain.entries.size(), 3u);
  EXPECT_EQ(chain.end, End::kLimit);
}

TEST(Unwinder, follows_frame_pointers_where_there_are_no_rules) {
  // Two frames of made code that keep one, in a mapping of no file.
  const uint64_t words[] = {0, 0x7010, 0x5100, 0, 0, 0};
  Registers registers;
  registers.set(kIp, 0x5000);
  registers.set(kSp, 0x7000);
  registers.set(kBp, 0x7008);
  const Mapping code{0x5000, 0x6000, 0, "", {}, {}};
  const StackCopy stack{0x7000, reinterpret_cast<const uint8_t*>(words), sizeof(words)};
  const Chain chain = Unwinder().unwind(registers, stack, {&code, 1});
  EXPECT_EQ(addresses(chain), (std::vector<uint64_t>{0x5000, 0x5100}));
}

TEST(Unwinder, an_address_outside_of_every_mapping_ends_the_chain) {
  const Sample sample = sample_of(raise_signal);
  const Chain chain = Unwinder().unwind(sample.registers, sample.copy(), {});
  EXPECT_EQ(chain.entries.size(), 1u);
  EXPECT_EQ(chain.end, End::kNoModule);
}

TEST(Unwinder, says_which_files_it_could_not_read) {
  const Sample sample = sample_of(raise_signal);
  std::vector<Mapping> mappings = own_mappings();
  for (Mapping& mapping : mappings) mapping.build_id = "another";
  Unwinder unwinder;
  EXPECT_LT(addresses(unwinder.unwind(sample.registers, sample.copy(), mappings)).size(),
            expected(sample).size());
  ASSERT_FALSE(unwinder.failures().empty());
  EXPECT_THAT(unwinder.failures()[0], testing::HasSubstr("build-id differs"));
}

class ReplacedFile : public aon::test::FolderFixture {
 protected:
  /// Puts a copy of `file` at the path, as an installation does.
  FileId put(const std::string& file) {
    std::filesystem::copy_file(file, path("new"));
    std::filesystem::rename(path("new"), path("program"));
    return file_id_of(path("program"));
  }
};

TEST_F(ReplacedFile, is_not_unwound_by_the_rules_of_the_one_before) {
  const Sample sample = sample_of(raise_signal);
  std::vector<Mapping> mappings = own_mappings();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string other;
  for (const Mapping& mapping : mappings) {
    if (mapping.path.find("/libc.so") != std::string::npos) other = mapping.path;
  }
  ASSERT_NE(other, "");
  Unwinder unwinder;
  const auto chain_with = [&](const FileId& file) {
    for (Mapping& mapping : mappings) {
      if (mapping.path != program && mapping.path != path("program")) continue;
      mapping.path = path("program");
      mapping.file = file;
    }
    return addresses(unwinder.unwind(sample.registers, sample.copy(), mappings));
  };
  const FileId first = put(other);
  EXPECT_NE(chain_with(first), expected(sample));
  const FileId second = put(program);
  EXPECT_EQ(chain_with(second), expected(sample));
  put(other);
  EXPECT_EQ(chain_with(second), expected(sample)) << "what was open stays";
  EXPECT_NE(chain_with(first), expected(sample));
}

TEST_F(ReplacedFile, is_not_read_when_it_came_after_the_mapping) {
  const Sample sample = sample_of(raise_signal);
  std::vector<Mapping> mappings = own_mappings();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const FileId mapped = put(program);
  put(program);
  for (Mapping& mapping : mappings) {
    if (mapping.path != program) continue;
    mapping.path = path("program");
    mapping.file = mapped;
  }
  Unwinder unwinder;
  EXPECT_NE(addresses(unwinder.unwind(sample.registers, sample.copy(), mappings)),
            expected(sample));
  ASSERT_FALSE(unwinder.failures().empty());
  EXPECT_THAT(unwinder.failures()[0], testing::HasSubstr("was replaced"));
}

class ManyFiles : public aon::test::FolderFixture {};

size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST_F(ManyFiles, are_not_all_held_open) {
  constexpr size_t kFiles = 300;
  const size_t before = open_files();
  Unwinder unwinder;
  Registers registers;
  registers.set(kIp, 0x1500);
  registers.set(kSp, 0x9000);
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string name = path(std::to_string(i));
    std::filesystem::create_symlink("/proc/self/exe", name);
    const Mapping mapping{0x1000, 0x2000, 0, name, {}, {}};
    EXPECT_EQ(unwinder.unwind(registers, {}, {&mapping, 1}).entries.size(), 1u);
  }
  EXPECT_TRUE(unwinder.failures().empty());
  EXPECT_GT(open_files(), before);
  EXPECT_LT(open_files(), before + kFiles);
}

TEST(Unwinder, any_stack_ends_the_chain) {
  Sample sample = sample_of(raise_signal);
  const std::vector<Mapping> mappings = own_mappings();
  Unwinder unwinder;
  uint64_t state = 88172645463325252u;
  for (int turn = 0; turn < 2000; ++turn) {
    for (int changes = 0; changes < 64; ++changes) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      uint64_t value = state;
      if (turn % 2 == 0) value = *sample.registers.get(kIp) + state % 4096;
      if (turn % 3 == 0) value = sample.stack_begin + state % kCopiedBytes;
      std::memcpy(sample.stack.data() + (state >> 20) % (kCopiedBytes - 8), &value, sizeof(value));
    }
    EXPECT_LE(unwinder.unwind(sample.registers, sample.copy(), mappings).entries.size(), 128u);
  }
}

}  // namespace
}  // namespace aon::unwind
