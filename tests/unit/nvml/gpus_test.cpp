#include "plugins/nvml/gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>

extern const char* const kFakeNvml;     // the build writes it
extern const char* const kFakeNvmlOld;  // the build writes it

namespace aon::nvml {
namespace {

constexpr uint64_t kMs = 1'000'000;

/// GPUs of the fake, each test in a process of its own; the clock is the test's.
class NvmlGpus : public testing::Test {
 protected:
  static void knob(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

  void open(const char* library = kFakeNvml, uint32_t rest = kRestPerCost) {
    gpus_.emplace(
        library, [this] { return clock_ns_ += cost_ns_; }, rest);
    is_found_ = gpus_->find();
  }

  /// Values by series, of one GPU: counts scaled.
  std::map<std::string, double> read(uint64_t now_ns, uint32_t gpu = 0) {
    std::map<std::string, double> values;
    for (const GpuValue& one : gpus_->read(now_ns)) {
      if (one.gpu != gpu) continue;
      const Value& v = one.value;
      values[v.series->name] = v.is_count ? static_cast<double>(v.raw) * v.number : v.number;
    }
    return values;
  }

  std::optional<Gpus> gpus_;
  bool is_found_ = false;
  uint64_t clock_ns_ = 0;
  uint64_t cost_ns_ = 0;  ///< of all that is asked together
};

TEST_F(NvmlGpus, are_found_with_what_identifies_them) {
  knob("FAKE_NVML_GPUS", "2");
  open();
  ASSERT_TRUE(is_found_);
  ASSERT_EQ(gpus_->gpus().size(), 2u);
  const Gpu& second = gpus_->gpus()[1];
  EXPECT_EQ(second.uuid, "GPU-00000001-1111-2222-3333-444444440000");
  EXPECT_EQ(second.name, "Fake H100");
  EXPECT_EQ(second.address, "0000:18:00.0");
  EXPECT_TRUE(second.has_gpm);
  EXPECT_EQ(gpus_->state().state, AON_STATE_ON);
  EXPECT_EQ(gpus_->state().reason, "driver 580.65.06, NVML 13.580.65.06: 2 x Fake H100 (GPM)");
}

TEST_F(NvmlGpus, values_have_the_units_of_their_series) {
  open();
  const auto values = read(0);
  EXPECT_EQ(values.at("nvml/power"), 100);
  EXPECT_EQ(values.at("nvml/clock-sm"), 1980e6);
  EXPECT_EQ(values.at("nvml/clock-memory"), 2619e6);
  EXPECT_EQ(values.at("nvml/clock-reasons"), 1);
  EXPECT_EQ(values.at("nvml/temperature"), 40);
  EXPECT_EQ(values.at("nvml/temperature-memory"), 55);
  EXPECT_EQ(values.at("nvml/memory-used"), static_cast<double>(20ull << 30));
  EXPECT_EQ(values.at("nvml/memory-free"), static_cast<double>(60ull << 30));
  EXPECT_DOUBLE_EQ(values.at("nvml/utilisation"), 0.75);
  EXPECT_DOUBLE_EQ(values.at("nvml/utilisation-memory"), 0.25);
  EXPECT_EQ(values.at("health/ecc-uncorrected"), 1);
  EXPECT_EQ(values.at("health/remapped-rows-pending"), 1);
  EXPECT_EQ(values.at("health/pcie-replays"), 3);
  EXPECT_EQ(values.at("health/xid-errors"), 0);
  const auto later = read(2000 * kMs);
  EXPECT_DOUBLE_EQ(later.at("nvml/energy") - values.at("nvml/energy"), 100);
  // The fake's counts grow with each call: three queries ask for fields.
  EXPECT_DOUBLE_EQ(later.at("nvml/nvlink-sent") - values.at("nvml/nvlink-sent"), 3000 * 1024);
  EXPECT_DOUBLE_EQ(later.at("nvml/throttled-power") - values.at("nvml/throttled-power"), 3);
  EXPECT_EQ(later.count("nvml/throttled-thermal"), 0u) << "the fake has no such field";
}

TEST_F(NvmlGpus, gpm_tells_what_happened_between_two_looks) {
  open();
  EXPECT_EQ(read(0).count("gpm/sm-active"), 0u);
  const auto values = read(100 * kMs);
  EXPECT_DOUBLE_EQ(values.at("gpm/graphics-active"), 0.01);
  EXPECT_DOUBLE_EQ(values.at("gpm/sm-active"), 0.02);
  EXPECT_DOUBLE_EQ(values.at("gpm/sm-occupancy"), 0.03);
  EXPECT_DOUBLE_EQ(values.at("gpm/tensor-active"), 0.05);
  EXPECT_DOUBLE_EQ(values.at("gpm/dram-active"), 0.10);
  EXPECT_DOUBLE_EQ(values.at("gpm/pcie-sent-rate"), 20 * 1048576.0);
  EXPECT_EQ(values.count("gpm/nvlink-sent-rate"), 0u);
  EXPECT_EQ(values.count("nvml/power"), 0u) << "only GPM is due after 100 ms";
}

TEST_F(NvmlGpus, looks_of_gpm_are_apart_also_after_one_that_was_late) {
  open();
  cost_ns_ = 30 * kMs;
  read(0);
  cost_ns_ = 0;
  EXPECT_EQ(read(129 * kMs).count("gpm/sm-active"), 0u) << "99 ms behind a look at 30 ms";
  EXPECT_EQ(read(130 * kMs).count("gpm/sm-active"), 1u);
}

/// GPM tells what happened until the driver looked, which a program's lock may have held up.
TEST_F(NvmlGpus, a_look_has_the_time_of_its_answer_and_other_rows_their_own) {
  knob("FAKE_NVML_GPUS", "2");
  knob("FAKE_NVML_SLOW", "nvmlGpmSampleGet:30,nvmlDeviceGetTemperature:20");
  open();
  gpus_->read(0);
  const uint64_t begin_ns = steady_ns();
  std::map<std::pair<std::string, uint32_t>, uint64_t> times_ns;
  uint64_t last_ns = begin_ns;
  for (const GpuValue& one : gpus_->read(1000 * kMs)) {
    EXPECT_GE(one.read_ns, last_ns) << one.value.series->name;
    last_ns = one.read_ns;
    times_ns[{one.value.series->name, one.gpu}] = one.read_ns;
  }
  const auto time_ns = [&](const char* series, uint32_t gpu) { return times_ns.at({series, gpu}); };
  EXPECT_GE(time_ns("gpm/sm-active", 0), begin_ns + 30 * kMs);
  EXPECT_GE(time_ns("gpm/sm-active", 1), time_ns("gpm/sm-active", 0) + 30 * kMs);
  EXPECT_EQ(time_ns("nvml/temperature-memory", 0), time_ns("nvml/power", 0)) << "one row";
  EXPECT_GE(time_ns("nvml/power", 1), time_ns("nvml/power", 0) + 20 * kMs);
}

TEST_F(NvmlGpus, pcie_is_asked_where_gpm_does_not_tell_it) {
  knob("FAKE_NVML_GPM", "0");
  open();
  const auto values = read(0);
  EXPECT_EQ(values.at("pcie/sent-rate"), 1e6);
  EXPECT_EQ(values.at("pcie/received-rate"), 2e6);
  EXPECT_EQ(gpus_->next_ns(), 1000 * kMs);
}

TEST_F(NvmlGpus, each_kind_has_its_pace) {
  open();
  read(0);
  EXPECT_EQ(gpus_->next_ns(), 100 * kMs);
  EXPECT_TRUE(read(99 * kMs).empty());
  EXPECT_EQ(read(1000 * kMs).count("nvml/power"), 1u);
  EXPECT_EQ(read(9999 * kMs).count("health/ecc-corrected"), 0u);
  EXPECT_EQ(read(10'000 * kMs).count("health/ecc-corrected"), 1u);
  gpus_->hurry();
  EXPECT_EQ(read(10'001 * kMs).count("health/ecc-corrected"), 1u);
}

TEST_F(NvmlGpus, a_slow_driver_is_asked_less_often_and_that_is_said) {
  open();
  cost_ns_ = 40 * kMs;
  read(0);
  EXPECT_EQ(gpus_->next_ns(), 140 * kMs) << "once is an accident";
  read(140 * kMs);
  EXPECT_EQ(gpus_->next_ns(), 1000 * kMs) << "of another kind";
  read(1000 * kMs);
  EXPECT_EQ(read(2099 * kMs).count("gpm/sm-active"), 0u);
  EXPECT_NE(gpus_->state().reason.find("GPM asked less often, the driver took 40 ms at a time"),
            std::string::npos)
      << gpus_->state().reason;
  EXPECT_EQ(gpus_->state().state, AON_STATE_ON);
}

TEST_F(NvmlGpus, asking_keeps_to_the_budget) {
  EXPECT_EQ(rest_per_gpu(1), 200u) << "half a percent of a core";
  EXPECT_EQ(rest_per_gpu(100), 2u) << "what launches may wait for bounds it then";
  EXPECT_EQ(rest_per_gpu(0), 20'000u);
  knob("FAKE_NVML_GPUS", "1");
  open(kFakeNvml, rest_per_gpu(1));
  ASSERT_EQ(gpus_->gpus().size(), 1u);
  cost_ns_ = 2 * kMs;
  read(0);
  EXPECT_EQ(gpus_->next_ns(), 102 * kMs);
  read(102 * kMs);
  EXPECT_EQ(gpus_->next_ns(), (102 + 2 + 200 * 2) * kMs);
}

/// Two looks that a program's lock of the driver held up: 200 T would be 40 s.
TEST_F(NvmlGpus, a_rest_is_no_longer_than_ten_seconds_but_for_the_programs_sake) {
  open(kFakeNvml, rest_per_gpu(1));
  ASSERT_EQ(gpus_->gpus().size(), 1u);
  cost_ns_ = 200 * kMs;
  gpus_->read(0);
  const uint64_t start_ns = 20'000 * kMs;
  gpus_->read(start_ns);  // all is due
  EXPECT_EQ(gpus_->next_ns(), start_ns + 10'000 * kMs);
  cost_ns_ = 400 * kMs;
  gpus_->read(start_ns + 30'000 * kMs);
  gpus_->read(start_ns + 60'000 * kMs);
  EXPECT_EQ(gpus_->next_ns(), start_ns + (60'000 + 50 * 400) * kMs) << "a fiftieth of the time";
}

TEST_F(NvmlGpus, a_short_answer_is_not_told_as_none) {
  open(kFakeNvml, rest_per_gpu(0.01));
  cost_ns_ = kMs / 4;
  read(0);
  read(102 * kMs);
  EXPECT_NE(gpus_->state().reason.find("GPM asked less often, the driver took 250 us at a time"),
            std::string::npos)
      << gpus_->state().reason;
}

TEST_F(NvmlGpus, more_gpus_have_more_of_the_budget) {
  knob("FAKE_NVML_GPUS", "2");
  open(kFakeNvml, rest_per_gpu(1));
  ASSERT_EQ(gpus_->gpus().size(), 2u);
  cost_ns_ = 2 * kMs;
  read(0);
  read(102 * kMs);
  EXPECT_EQ(gpus_->next_ns(), (102 + 2 + 100 * 2) * kMs);
}

TEST_F(NvmlGpus, an_old_version_gives_what_it_has) {
  open(kFakeNvmlOld);
  ASSERT_TRUE(is_found_);
  const auto values = read(0);
  EXPECT_EQ(values.at("nvml/power"), 100);
  EXPECT_EQ(values.at("nvml/clock-reasons"), 4) << "by its old name";
  EXPECT_EQ(values.at("pcie/sent-rate"), 1e6);
  EXPECT_EQ(values.count("health/remapped-rows-pending"), 0u);
  EXPECT_EQ(gpus_->state().state, AON_STATE_ON);
  EXPECT_NE(gpus_->state().reason.find("remapped rows: not in this version"), std::string::npos);
}

TEST_F(NvmlGpus, a_query_that_fails_takes_no_other_with_it) {
  knob("FAKE_NVML_ERROR", "nvmlDeviceGetTotalEccErrors:4,nvmlDeviceGetPowerUsage:3");
  open();
  const auto values = read(0);
  EXPECT_EQ(values.count("nvml/power"), 0u);
  EXPECT_EQ(values.count("health/ecc-corrected"), 0u);
  EXPECT_EQ(values.count("nvml/temperature"), 1u);
  const node::StateText state = gpus_->state();
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_NE(state.reason.find("power: not supported"), std::string::npos) << state.reason;
  EXPECT_NE(state.reason.find("ECC errors: no permission"), std::string::npos) << state.reason;
  EXPECT_NE(state.remedy.find("/dev/nvidia*"), std::string::npos);
}

TEST_F(NvmlGpus, permission_for_gpm_may_go_in_mid_run) {
  knob("FAKE_NVML_ERROR", "nvmlGpmSampleGet:4:3");
  open();
  EXPECT_EQ(read(0).count("pcie/received-rate"), 0u) << "GPM tells it, and asking takes 40 ms";
  EXPECT_EQ(read(100 * kMs).count("gpm/sm-active"), 1u);
  EXPECT_EQ(gpus_->state().state, AON_STATE_ON);
  const auto refused = read(200 * kMs);
  EXPECT_EQ(refused.count("gpm/sm-active"), 0u);
  EXPECT_EQ(refused.count("pcie/received-rate"), 1u) << "GPM does not tell it any more";
  EXPECT_EQ(gpus_->state().state, AON_STATE_DEGRADED);
  EXPECT_NE(gpus_->state().remedy.find("NVreg_RestrictProfilingToAdminUsers"), std::string::npos);
}

TEST_F(NvmlGpus, a_lost_gpu_is_told_and_the_others_go_on) {
  knob("FAKE_NVML_GPUS", "2");
  knob("FAKE_NVML_LOST", "1:2");
  open();
  EXPECT_EQ(read(0, 1).count("nvml/power"), 1u);
  std::map<std::string, std::map<uint32_t, int>> seen;
  for (const GpuValue& one : gpus_->read(1000 * kMs)) ++seen[one.value.series->name][one.gpu];
  EXPECT_EQ(seen["nvml/power"], (std::map<uint32_t, int>{{0, 1}}));
  EXPECT_TRUE(read(2000 * kMs, 1).empty());
  const node::StateText state = gpus_->state();
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_NE(state.reason.find("GPU-00000001-1111-2222-3333-444444440000: the GPU is lost"),
            std::string::npos)
      << state.reason;
}

TEST_F(NvmlGpus, parts_of_a_gpu_are_devices_of_their_own) {
  knob("FAKE_NVML_MIG", "2");
  open();
  ASSERT_EQ(gpus_->gpus().size(), 3u);
  EXPECT_FALSE(gpus_->gpus()[0].has_gpm) << "only its parts have it";
  const Gpu& part = gpus_->gpus()[2];
  EXPECT_EQ(part.uuid, "MIG-00000000-1111-2222-3333-444444440002");
  EXPECT_EQ(part.address, gpus_->gpus()[0].address);
  EXPECT_EQ(part.instance, 8u);
  const auto first = read(0, 2);
  EXPECT_EQ(first.count("nvml/memory-used"), 1u);
  EXPECT_EQ(first.count("nvml/power"), 0u) << "of the whole board";
  EXPECT_EQ(first.count("health/xid-errors"), 0u);
  EXPECT_EQ(read(100 * kMs, 2).count("gpm/sm-active"), 1u);
}

TEST_F(NvmlGpus, an_xid_is_counted_and_said) {
  knob("FAKE_NVML_XID", "0:79:2");
  open();
  EXPECT_EQ(read(0).at("health/xid-errors"), 0);
  const auto values = read(100 * kMs);
  EXPECT_EQ(values.at("health/xid"), 79);
  EXPECT_EQ(values.at("health/xid-errors"), 1);
  EXPECT_NE(gpus_->state().reason.find("Xid 79 (the GPU has fallen off the bus)"),
            std::string::npos);
  EXPECT_NE(gpus_->state().remedy.find("dmesg"), std::string::npos);
}

TEST_F(NvmlGpus, events_that_end_are_missed) {
  knob("FAKE_NVML_ERROR", "nvmlEventSetWait_v2:15:2");
  open();
  read(0);
  EXPECT_EQ(gpus_->state().state, AON_STATE_ON);
  EXPECT_EQ(read(1000 * kMs).count("nvml/power"), 1u);
  EXPECT_EQ(gpus_->state().state, AON_STATE_DEGRADED);
  EXPECT_NE(gpus_->state().reason.find("no more Xid events"), std::string::npos);
}

TEST_F(NvmlGpus, events_are_missed_after_three_errors_in_a_row) {
  knob("FAKE_NVML_ERROR", "nvmlEventSetWait_v2:999:2");
  open();
  for (uint64_t second = 0; second < 3; ++second) {
    read(second * 1000 * kMs);
    EXPECT_EQ(gpus_->state().state, AON_STATE_ON) << second;
  }
  read(3000 * kMs);
  EXPECT_EQ(gpus_->state().state, AON_STATE_DEGRADED);
}

TEST_F(NvmlGpus, events_of_one_gpu_that_end_leave_the_others) {
  knob("FAKE_NVML_GPUS", "3");
  knob("FAKE_NVML_NO_EVENTS", "1:2");
  knob("FAKE_NVML_XID", "2:31:3");
  open();
  read(0);
  read(1000 * kMs);
  EXPECT_EQ(read(2000 * kMs, 2).at("health/xid"), 31);
  const std::string reason = gpus_->state().reason;
  EXPECT_NE(reason.find("GPU-00000001-1111-2222-3333-444444440000: no more Xid events"),
            std::string::npos)
      << reason;
  EXPECT_EQ(reason.find("GPU-00000000-1111-2222-3333-444444440000: no more"), std::string::npos);
}

TEST_F(NvmlGpus, without_events_all_else_works) {
  knob("FAKE_NVML_ERROR", "nvmlEventSetCreate:3");
  open();
  EXPECT_EQ(read(0).count("nvml/power"), 1u);
  EXPECT_NE(gpus_->state().reason.find("Xid events: not supported"), std::string::npos);
}

TEST_F(NvmlGpus, no_library_no_driver_and_no_gpu_are_told_apart) {
  open("/none/libnvidia-ml.so.1");
  EXPECT_FALSE(is_found_);
  EXPECT_NE(gpus_->state().reason.find("libnvidia-ml.so.1 is not there"), std::string::npos);
  knob("FAKE_NVML_ERROR", "nvmlInit_v2:9");
  open();
  EXPECT_FALSE(is_found_);
  EXPECT_EQ(gpus_->state().remedy, "modprobe nvidia");
  knob("FAKE_NVML_ERROR", "nvmlInit_v2:18");
  open();
  EXPECT_NE(gpus_->state().reason.find("different versions"), std::string::npos);
  knob("FAKE_NVML_ERROR", "");
  knob("FAKE_NVML_GPUS", "0");
  open();
  EXPECT_FALSE(is_found_);
  EXPECT_EQ(gpus_->state().state, AON_STATE_OFF);
  EXPECT_NE(gpus_->state().reason.find("no GPU is visible"), std::string::npos);
}

TEST_F(NvmlGpus, those_of_other_jobs_are_left_out) {
  knob("FAKE_NVML_GPUS", "4");
  knob("FAKE_NVML_HIDDEN", "3");
  open();
  ASSERT_TRUE(is_found_);
  EXPECT_EQ(gpus_->gpus().size(), 1u);
  EXPECT_EQ(gpus_->state().state, AON_STATE_ON);
  EXPECT_NE(gpus_->state().reason.find("3 more are not this job's"), std::string::npos);
}

TEST_F(NvmlGpus, one_without_a_uuid_is_said_to_be_left_out) {
  knob("FAKE_NVML_GPUS", "2");
  knob("FAKE_NVML_ERROR", "nvmlDeviceGetUUID:999:2");
  open();
  ASSERT_TRUE(is_found_);
  EXPECT_EQ(gpus_->gpus().size(), 1u);
  EXPECT_EQ(gpus_->state().state, AON_STATE_DEGRADED);
  EXPECT_NE(gpus_->state().reason.find("1 more are not read: the driver tells no UUID"),
            std::string::npos);
}

TEST_F(NvmlGpus, those_that_cannot_be_reached_are_counted) {
  knob("FAKE_NVML_GPUS", "3");
  knob("FAKE_NVML_ERROR", "nvmlDeviceGetHandleByIndex_v2:15:2");
  open();
  ASSERT_TRUE(is_found_);
  EXPECT_EQ(gpus_->state().state, AON_STATE_DEGRADED);
  EXPECT_NE(gpus_->state().reason.find("2 more cannot be reached"), std::string::npos)
      << gpus_->state().reason;
}

}  // namespace
}  // namespace aon::nvml
