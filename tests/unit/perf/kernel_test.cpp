#include "plugins/perf/kernel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace aon::perf {
namespace {

constexpr rlim_t kLimit = 256;

perf_event_attr user_time(uint64_t period_ns) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = period_ns;
  attr.exclude_kernel = 1;
  attr.disabled = 1;
  return attr;
}

class PerfKernel : public testing::Test {
 protected:
  void SetUp() override {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{kLimit, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  void TearDown() override {
    for (const int fd : taken_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  /// Opens until the next descriptor is `next`.
  void take_descriptors_below(int next) {
    for (;;) {
      const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
      ASSERT_GE(fd, 0);
      if (fd >= next) {
        close(fd);
        return;
      }
      taken_.push_back(fd);
    }
  }
  /// 0, or the error.
  static int open_error(uint64_t period_ns, pid_t thread) {
    const int fd = real_kernel().open_event(user_time(period_ns), thread, kNoGroup);
    if (fd < 0) return -fd;
    real_kernel().close_event(fd);
    return 0;
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST_F(PerfKernel, leaves_the_last_descriptors_to_the_agent_and_those_before_to_samples) {
  constexpr uint64_t kPeriodNs = 10'000'000;
  constexpr pid_t kProbe = 0;
  const pid_t self = gettid();
  const int error = open_error(0, self);
  ASSERT_NE(error, EMFILE);
  if (error != 0) GTEST_SKIP() << "no perf events here";
  take_descriptors_below(kLimit - kLimit / 4);
  EXPECT_EQ(open_error(0, self), EMFILE);
  EXPECT_EQ(open_error(0, kProbe), 0);
  EXPECT_EQ(open_error(kPeriodNs, self), 0);
  take_descriptors_below(kLimit - 24);
  EXPECT_EQ(open_error(kPeriodNs, self), EMFILE);
  EXPECT_EQ(open_error(0, kProbe), EMFILE);
}

TEST(PerfKernelFiles, are_read_whole_however_long) {
  const auto path =
      std::filesystem::temp_directory_path() / ("aon-perf-" + std::to_string(getpid()));
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097},
                             size_t{12288}, size_t{70000}, size_t{1} << 20}) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>('a' + i % 23));
    std::ofstream(path) << text;
    EXPECT_EQ(real_kernel().read_file(path), text) << bytes;
  }
  std::filesystem::remove(path);
  EXPECT_EQ(real_kernel().read_file(path), "");
}

TEST(PerfKernelFiles, of_others_are_taken_in_pieces_whole_or_told) {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string name = "aon-perf-" + std::to_string(getpid());
  constexpr size_t kBytes = (size_t{17} << 20) + 5;
  std::ofstream(folder / name).close();
  std::filesystem::resize_file(folder / name, kBytes);
  const int fd = real_kernel().open_folder(folder);
  size_t taken = 0;
  const auto read = [&](uid_t owner, int64_t not_before_s, size_t max_bytes) {
    taken = 0;
    return real_kernel().read_owned(fd, name, owner, not_before_s, max_bytes,
                                    [&](std::string_view piece) { taken += piece.size(); });
  };
  EXPECT_TRUE(read(getuid(), 0, kBytes));
  EXPECT_EQ(taken, kBytes);
  EXPECT_FALSE(read(getuid(), 0, kBytes - 1));
  EXPECT_EQ(taken, 0u);
  EXPECT_TRUE(read(getuid(), INT64_MAX, kBytes)) << "older than the process";
  EXPECT_EQ(taken, 0u);
  if (getuid() != 0) {
    EXPECT_TRUE(read(getuid() + 1, 0, kBytes)) << "somebody else's";
    EXPECT_EQ(taken, 0u);
  }
  close(fd);
  std::filesystem::remove(folder / name);
}

}  // namespace
}  // namespace aon::perf
