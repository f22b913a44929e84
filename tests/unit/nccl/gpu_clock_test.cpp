// The GPU's timer against the clock of the process.

#include "plugins/nccl/gpu_clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace aon::nccl {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kTimerNs = 1'700'000'000 * kSecondNs;  ///< what the GPU's timer says at first

/// Ticks are ns here.
class NcclGpuClock : public testing::Test {
 protected:
  NcclGpuClock() : state_(static_cast<State*>(std::calloc(1, sizeof(State))), std::free) {}
  Communicator& communicator() { return state_->communicators[0]; }
  /// As if that much had passed since the events so far.
  void pass(uint64_t time_ns) {
    communicator().gpu.base_ticks -= static_cast<int64_t>(time_ns);
    communicator().gpu_window_ticks -= time_ns;
  }
  /// By two events, as for the begin of an operation and its end.
  void tell(uint64_t gpu_ns) {
    for (int i = 0; i < 2; ++i) adjust(communicator(), *state_, &writer_, gpu_ns);
  }
  /// How long ago that was, as far as is known.
  int64_t age_ns(uint64_t gpu_ns) const {
    const GpuClock clock = read_clock(state_->communicators[0].gpu_shared);
    return static_cast<int64_t>(ticks(&writer_) - gpu_ticks(clock, gpu_ns));
  }

 private:
  std::unique_ptr<State, void (*)(void*)> state_;
  Writer writer_ = {};
};

/// A communicator that is used once a minute, by a GPU whose timer loses 10 us a second.
TEST_F(NcclGpuClock, goes_on_from_where_it_is_after_a_pause) {
  constexpr uint64_t kPauseNs = 60 * kSecondNs;
  constexpr uint64_t kDriftNs = 600'000;
  tell(kTimerNs);
  for (uint64_t pause = 1; pause <= 3; ++pause) {
    pass(kPauseNs);
    const uint64_t timer_ns = kTimerNs + pause * (kPauseNs - kDriftNs);
    tell(timer_ns);
    EXPECT_GE(age_ns(timer_ns), 0);
    EXPECT_LT(age_ns(timer_ns), static_cast<int64_t>(kDriftNs - kDriftNs / 10)) << pause;
  }
}

/// What is told late after a pause is no sign of more than two clocks go apart.
TEST_F(NcclGpuClock, is_not_misled_by_an_event_that_comes_late_after_a_pause) {
  constexpr int64_t kMs = 1'000'000;
  tell(kTimerNs);
  pass(10 * kSecondNs + 5 * kMs);
  tell(kTimerNs + 10 * kSecondNs);
  EXPECT_GE(age_ns(kTimerNs + 10 * kSecondNs), 4 * kMs);
  tell(kTimerNs + 10 * kSecondNs + 5 * kMs);
  EXPECT_LT(std::abs(age_ns(kTimerNs + 10 * kSecondNs + 5 * kMs)), kMs / 2);
}

}  // namespace
}  // namespace aon::nccl
