// What the summary says of devices that their units bound.

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/shares.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

/// Tells the summary that a test wants.
class Devices final : public DeviceAnalysis {
 public:
  explicit Devices(DeviceSummary summary) : summary_(std::move(summary)) {}
  const DeviceSummary& summary() const override { return summary_; }
  void add_nccl_listener(NcclListener) override {}
  Status begin(const Model&) override { return {}; }
  Status begin_location(const Location&) override { return {}; }
  Status events(std::span<const Event>) override { return {}; }
  Status end_location() override { return {}; }
  Status finish(const Outcome&) override { return {}; }

 private:
  DeviceSummary summary_;
};

/// Works for 50 of 100 s, and then with a pipe that is never idle.
DeviceUse half_busy() {
  DeviceUse use;
  use.times.span_ns = 100 * kSecond;
  use.times.busy_ns = 50 * kSecond;
  use.kernel_count = 1000;
  use.units.counted_ns = 100 * kSecond;
  use.units.compute = 0.5F;
  use.units.memory = 0.1F;
  use.units.sm_active = 0.25F;
  use.units.class_ns[static_cast<size_t>(UnitClass::kIdle)] = 50 * kSecond;
  use.units.class_ns[static_cast<size_t>(UnitClass::kCompute)] = 50 * kSecond;
  use.bound = Bound::kCompute;
  return use;
}

class FindingsOfDevices : public testing::Test {
 protected:
  FindingsOfDevices() : model_(test::make_model(1)) {
    job_.nodes.resize(1);
    model_.job = &job_;
    model_.groups[0].process = &process_;
    model_.groups[0].name = "MPI Rank 0";
  }
  /// The weightiest first.
  std::vector<std::string> lines_of(std::vector<DeviceUse> uses) const {
    DeviceSummary summary;
    summary.uses = std::move(uses);
    const Devices devices(std::move(summary));
    Findings findings(nullptr);
    findings.use_devices(&devices);
    test::run_whole({&findings}, model_, [](const Location&) {
      return std::vector<Event>{test::enter(1, 0), test::leave(100 * kSecond, 0)};
    });
    return findings.lines({});
  }
  static std::string bound_line(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      if (line.find("busiest pipe") != std::string::npos) return line;
    }
    return {};
  }

  spool::Job job_;
  spool::Process process_;
  Model model_;
};

TEST_F(FindingsOfDevices, shares_are_of_the_time_that_a_device_works) {
  EXPECT_EQ(bound_line(lines_of({half_busy()})),
            "GPU 0 of MPI Rank 0 is bound by computing in 100 % of the time that it works: its "
            "busiest pipe is used to 100 %, its memory to 20 %, multiprocessors to 50 %");
}

TEST_F(FindingsOfDevices, shares_are_of_what_is_recorded_of_it) {
  DeviceUse use = half_busy();
  use.times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)] = 80 * kSecond;
  use.times.busy_ns = 25 * kSecond / 2;
  EXPECT_NE(bound_line(lines_of({use})).find("used to 80 %, its memory to 16 %"),
            std::string::npos);
}

TEST_F(FindingsOfDevices, counters_of_others_make_no_share_above_all) {
  DeviceUse use = half_busy();
  use.times.busy_ns = 10 * kSecond;
  EXPECT_NE(bound_line(lines_of({use})).find("used to 100 %, its memory to 100 %"),
            std::string::npos);
}

/// Each works in turn for half of the time: the pipe that is half used then is so all the time.
TEST_F(FindingsOfDevices, shares_are_of_the_time_that_anybody_works) {
  process_.devices[0].definition.uuid[0] = 7;
  EXPECT_NE(
      bound_line(lines_of({half_busy(), half_busy()})).find("used to 50 %, its memory to 10 %"),
      std::string::npos);
}

/// The one whose pipe is full while it works has nothing to save; the other one has.
TEST_F(FindingsOfDevices, idle_time_is_not_what_faster_work_saves) {
  DeviceUse always = half_busy();
  always.device = 1;
  always.times.busy_ns = 90 * kSecond;
  always.units.compute = 0.8F;
  EXPECT_EQ(bound_line(lines_of({half_busy(), always})).find("GPU 1 of MPI Rank 0"), 0u);
}

}  // namespace
}  // namespace aon::writers
