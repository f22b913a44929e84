#include "plugins/gpu_counters/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

extern const char* const kFakeCupti;  // the build writes it

namespace aon::gpu_counters {
namespace {

constexpr uint64_t kMs = 1'000'000;

class GpuCountersSession : public testing::Test {
 protected:
  void SetUp() override {
    setenv("AON_CUPTI_LIB", kFakeCupti, 1);
    ASSERT_FALSE(library_.open());
    session_ = std::make_unique<Session>(library_.call(), 0);
  }
  static void knob(const char* name, const char* value) { setenv(name, value, 1); }

  Problem start(const char* set = "core") { return session_->start(metric_set(set), kMs); }
  /// Samples until there are `wanted`.
  void read(size_t wanted) {
    while (ends_.size() < wanted) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      problem_ = session_->read([&](uint64_t start_ns, uint64_t end_ns, std::span<const double> v) {
        EXPECT_EQ(end_ns - start_ns, kMs);
        ends_.push_back(end_ns);
        values_.assign(v.begin(), v.end());
      });
      if (problem_) return;
    }
  }

  Library library_;
  std::unique_ptr<Session> session_;
  std::vector<uint64_t> ends_;
  std::vector<double> values_;
  Problem problem_;
};

TEST_F(GpuCountersSession, gives_each_sample_once) {
  ASSERT_FALSE(start());
  EXPECT_EQ(session_->chip(), "GH100");
  EXPECT_EQ(session_->metrics().size(), metric_set("core").size());
  read(5);
  ASSERT_FALSE(problem_) << problem_.reason;
  for (size_t i = 1; i < ends_.size(); ++i) EXPECT_EQ(ends_[i] - ends_[i - 1], kMs);
  EXPECT_EQ(values_.back(), static_cast<double>(metric_set("core").size() - 1));
}

TEST_F(GpuCountersSession, can_begin_again_after_its_end) {
  ASSERT_FALSE(start());
  read(1);
  session_->stop();
  session_->stop();
  ends_.clear();
  ASSERT_FALSE(start());
  read(1);
  EXPECT_FALSE(problem_);
}

TEST_F(GpuCountersSession, what_came_before_its_end_is_handed_on) {
  ASSERT_FALSE(start());
  read(1);
  const size_t told_count = ends_.size();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(session_->stop([&](uint64_t, uint64_t end_ns, std::span<const double>) {
    EXPECT_EQ(end_ns - ends_.back(), kMs);
    ends_.push_back(end_ns);
  }));
  EXPECT_GT(ends_.size(), told_count + 10);
}

TEST_F(GpuCountersSession, leaves_out_what_the_chip_lacks) {
  knob("FAKE_PM_LACKS", "pcie__");
  ASSERT_FALSE(start());
  EXPECT_EQ(session_->left_out(),
            (std::vector<std::string>{"pcie-received-rate", "pcie-sent-rate"}));
  read(1);
  EXPECT_EQ(values_.size(), metric_set("core").size() - 2);
}

TEST_F(GpuCountersSession, leaves_out_what_one_pass_does_not_take) {
  knob("FAKE_PM_PASS", "12");
  ASSERT_FALSE(start());
  EXPECT_EQ(session_->metrics().size(), 12u);
  EXPECT_EQ(session_->left_out(), (std::vector<std::string>{"pcie-sent-rate"}));
}

TEST_F(GpuCountersSession, of_a_chip_without_a_trigger_by_time_uses_its_clock) {
  knob("FAKE_PM_CHIP", "GA100");
  ASSERT_FALSE(start());
  read(1);
  EXPECT_FALSE(problem_);
}

TEST_F(GpuCountersSession, busy_counters_and_missing_privileges_have_remedies) {
  knob("FAKE_PM_ERROR", "cuptiPmSamplingEnable:26:1");
  const Problem busy = start();
  EXPECT_NE(busy.reason.find("in use by another profiler"), std::string::npos);
  EXPECT_NE(busy.remedy.find("dcgmi profile --pause"), std::string::npos);
  knob("FAKE_PM_ERROR", "cuptiPmSamplingEnable:35:2");
  const Problem forbidden = start();
  EXPECT_NE(forbidden.reason.find("administrators only"), std::string::npos);
  EXPECT_NE(forbidden.remedy.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  EXPECT_NE(forbidden.remedy.find("--cap-add SYS_ADMIN"), std::string::npos)
      << "root in a container may not";
  EXPECT_FALSE(start()) << "and works as soon as it may";
}

TEST_F(GpuCountersSession, what_fails_while_it_starts_leaves_nothing_enabled) {
  knob("FAKE_PM_ERROR", "cuptiPmSamplingSetConfig:999:1");
  EXPECT_TRUE(start());
  EXPECT_FALSE(start());
}

TEST_F(GpuCountersSession, a_full_buffer_is_counted) {
  knob("FAKE_PM_OVERFLOW", "1");
  ASSERT_FALSE(start());
  read(1);
  EXPECT_EQ(session_->overflow_count(), 1u);
}

TEST(GpuCountersLibrary, that_may_sample_another_gpu_is_not_used) {
  setenv("AON_CUPTI_LIB", kFakeCupti, 1);
  setenv("FAKE_PM_VERSION", "24", 1);
  const Problem problem = Library().open();
  EXPECT_NE(problem.reason.find("version 24"), std::string::npos) << problem.reason;
  EXPECT_NE(problem.remedy.find("12.8"), std::string::npos);
  setenv("FAKE_PM_VERSION", "26", 1);
  EXPECT_FALSE(Library().open());
}

TEST(GpuCountersLibrary, that_is_not_there_has_a_remedy) {
  unsetenv("AON_CUPTI_LIB");
  Library library;
  const Problem problem = library.open();
  if (!problem) GTEST_SKIP() << "libcupti is where the loader finds it";
  EXPECT_NE(problem.remedy.find("LD_LIBRARY_PATH"), std::string::npos);
}

}  // namespace
}  // namespace aon::gpu_counters
