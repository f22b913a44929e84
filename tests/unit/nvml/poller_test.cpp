#include "plugins/nvml/poller.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/provider/loader.h"
#include "core/provider/names.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kFakeNvml;   // the build writes it
extern const char* const kProviders;  // the build writes it

namespace aon::nvml {
namespace {

constexpr uint32_t kLongMs = 30'000;

TEST(NvmlPoller, hands_over_what_it_read) {
  Poller poller(
      kFakeNvml, [] { return uint64_t{7}; }, kRestPerCost);
  ASSERT_TRUE(poller.start());
  ASSERT_TRUE(poller.wait_found(kLongMs));
  EXPECT_EQ(poller.gpus().size(), 1u);
  ASSERT_TRUE(poller.read_now(kLongMs));
  const Taken taken = poller.take();
  EXPECT_TRUE(taken.is_found);
  ASSERT_FALSE(taken.rounds.empty());
  EXPECT_EQ(taken.rounds[0].ticks, 7u);
  EXPECT_EQ(taken.dropped_count, 0u);
}

TEST(NvmlPoller, what_was_held_up_has_a_time_of_its_own) {
  constexpr uint64_t kTicksPerNs = 3;
  constexpr uint64_t kSlowNs = 40'000'000;
  setenv("FAKE_NVML_GPUS", "2", 1);
  setenv("FAKE_NVML_SLOW", "nvmlDeviceGetTemperature:40", 1);
  Poller poller(
      kFakeNvml, [] { return kTicksPerNs * steady_ns(); }, kRestPerCost);
  ASSERT_TRUE(poller.start());
  ASSERT_TRUE(poller.wait_found(kLongMs));
  const uint64_t end_ticks = kTicksPerNs * steady_ns();
  std::map<uint32_t, uint64_t> ticks;  // of each GPU's power
  for (const Round& round : poller.take().rounds) {
    for (const GpuValue& one : round.values) {
      if (std::string(one.value.series->name) == "nvml/power")
        ticks.try_emplace(one.gpu, round.ticks);
    }
  }
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_GE(ticks[1], ticks[0] + kTicksPerNs * kSlowNs * 9 / 10);
  EXPECT_LE(ticks[1], end_ticks);
}

TEST(NvmlPoller, values_that_nobody_takes_are_dropped_and_counted) {
  setenv("FAKE_NVML_GPUS", "16", 1);
  Poller poller(
      kFakeNvml, [] { return uint64_t{0}; }, kRestPerCost);
  ASSERT_TRUE(poller.start());
  ASSERT_TRUE(poller.wait_found(kLongMs));
  // Each reading gives some 20 values of each GPU.
  for (size_t i = 0; i < kMaxWaiting / (16 * 10); ++i) ASSERT_TRUE(poller.read_now(kLongMs));
  const Taken taken = poller.take();
  size_t waiting = 0;
  for (const Round& round : taken.rounds) waiting += round.values.size();
  EXPECT_LE(waiting, kMaxWaiting);
  EXPECT_GT(waiting, kMaxWaiting / 2);
  EXPECT_GT(taken.dropped_count, 0u);
  ASSERT_TRUE(poller.read_now(kLongMs));
  EXPECT_EQ(poller.take().dropped_count, 0u);
}

TEST(NvmlPoller, makes_no_thread_without_the_library) {
  Poller poller(
      "/none/libnvidia-ml.so.1", [] { return uint64_t{0}; }, kRestPerCost);
  EXPECT_FALSE(poller.start());
  EXPECT_EQ(poller.take().state.state, AON_STATE_OFF);
}

TEST(NvmlPoller, a_driver_that_hangs_hangs_nobody_else) {
  setenv("FAKE_NVML_HANG", "nvmlDeviceGetTemperature:2", 1);
  auto poller = std::make_unique<Poller>(
      kFakeNvml, [] { return uint64_t{0}; }, kRestPerCost);
  ASSERT_TRUE(poller->start());
  ASSERT_TRUE(poller->wait_found(kLongMs));
  EXPECT_FALSE(poller->read_now(100));
  const Taken taken = poller->take();
  EXPECT_TRUE(taken.is_found);
  EXPECT_GT(taken.asking_ns, 50'000'000u);
  EXPECT_STREQ(taken.query, "temperature");
  poller.reset();  // and leaves its thread alone
}

TEST(NvmlPoller, an_answer_that_took_long_is_a_time_without_values) {
  setenv("FAKE_NVML_SLOW", "nvmlDeviceGetTemperature:5200", 1);
  Poller poller(
      kFakeNvml, [] { return uint64_t{0}; }, kRestPerCost);
  ASSERT_TRUE(poller.start());
  ASSERT_TRUE(poller.wait_found(kLongMs));
  EXPECT_TRUE(poller.read_now(kLongMs));
  const Taken taken = poller.take();
  EXPECT_EQ(taken.state.state, AON_STATE_DEGRADED);
  EXPECT_NE(taken.state.reason.find("did not answer for 5 s"), std::string::npos);
}

TEST(NvmlPoller, a_driver_that_hangs_at_the_start_is_not_waited_for) {
  setenv("FAKE_NVML_HANG", "nvmlInit_v2:1", 1);
  Poller poller(
      kFakeNvml, [] { return uint64_t{0}; }, kRestPerCost);
  ASSERT_TRUE(poller.start());
  EXPECT_FALSE(poller.wait_found(100));
  EXPECT_FALSE(poller.take().is_found);
  EXPECT_TRUE(poller.gpus().empty());
  EXPECT_FALSE(poller.read_now(100));
}

/// The provider itself: the fake is loaded already when it asks for the library by name.
class NvmlProvider : public testing::Test {
 protected:
  void load() {
    ASSERT_NE(dlopen(kFakeNvml, RTLD_NOW), nullptr) << dlerror();
    const std::filesystem::path folder = kProviders;
    auto loaded =
        provider::Provider::load(provider::provider_path(folder, "nvml"), AON_HOST_NODE, folder);
    ASSERT_TRUE(loaded) << loaded.error().message;
    provider_.emplace(std::move(*loaded));
  }
  bool start(const char* config) {
    return bool(provider_->start(&core_, aon::test::fake_core_api(), config));
  }

  aon_core core_;
  std::optional<provider::Provider> provider_;
};

TEST_F(NvmlProvider, gives_series_of_each_gpu_and_defines_it) {
  setenv("FAKE_NVML_GPUS", "2", 1);
  load();
  ASSERT_TRUE(start("nvml-wait-ms=30000\n"));
  provider_->flush();
  provider_->stop();
  ASSERT_EQ(core_.definitions.size(), 2u);
  EXPECT_EQ(core_.definitions[1].process, AON_PROCESS_NODE);
  const std::string payload(core_.definitions[1].payload.begin(),
                            core_.definitions[1].payload.end());
  EXPECT_NE(payload.find(std::string("Fake H100\0"
                                     "0000:18:00.0",
                                     22)),
            std::string::npos);
  const std::string gpu = "gpu_GPU-00000001-1111-2222-3333-444444440000/";
  EXPECT_EQ(core_.samples_of(AON_PROCESS_NODE, gpu + "nvml/power").at(0).value, 110);
  EXPECT_EQ(core_.samples_of(AON_PROCESS_NODE, gpu + "nvml/energy").at(0).value, 0)
      << "counts begin at 0";
  EXPECT_EQ(core_.states.at(AON_PROCESS_NODE).state, AON_STATE_ON);
  EXPECT_NE(core_.states.at(AON_PROCESS_NODE).reason.find("2 x Fake H100"), std::string::npos);
}

TEST_F(NvmlProvider, is_off_without_a_gpu) {
  setenv("FAKE_NVML_GPUS", "0", 1);
  load();
  EXPECT_FALSE(start("nvml-wait-ms=30000\n"));
  EXPECT_EQ(core_.states.at(AON_PROCESS_NODE).state, AON_STATE_OFF);
}

TEST_F(NvmlProvider, waits_as_its_own_key_says) {
  setenv("FAKE_NVML_GPUS", "1", 1);
  setenv("FAKE_NVML_SLOW", "nvmlInit_v2:300", 1);
  load();
  ASSERT_TRUE(start("other-nvml-wait-ms=10\nnvml-wait-ms=30000\n"));
  EXPECT_EQ(core_.states.at(AON_PROCESS_NODE).state, AON_STATE_ON);
  provider_->stop();
}

TEST_F(NvmlProvider, starts_while_the_driver_is_still_waking_its_gpus) {
  setenv("FAKE_NVML_HANG", "nvmlInit_v2:1", 1);
  load();
  ASSERT_TRUE(start("nvml-wait-ms=10\n"));
  EXPECT_EQ(core_.states.at(AON_PROCESS_NODE).state, AON_STATE_DEGRADED);
  EXPECT_NE(core_.states.at(AON_PROCESS_NODE).remedy.find("nvidia-smi -pm 1"), std::string::npos);
  provider_->tick(1);
  EXPECT_TRUE(core_.samples.empty());
  provider_->stop();
}

}  // namespace
}  // namespace aon::nvml
