#include "core/provider/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/provider/fake_core.h"

// The provider of these tests: notes its calls, and fails on demand.
struct aon_provider {
  std::vector<std::string> calls;
  bool throws = false;
  void note(const std::string& call) {
    calls.push_back(call);
    if (throws) throw std::runtime_error("broken on purpose");
  }
};

namespace aon::provider {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

aon_provider instance;
aon_status start_result = AON_OK;

aon_status start(aon_core*, const aon_core_api*, aon_host, const char* config,
                 aon_provider** self) {
  if (start_result == AON_OK) *self = &instance;
  instance.note(std::string("start ") + config);
  return start_result;
}

constexpr aon_provider_api kTable = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 100,
    .name = "test",
    .description = "a test",
    .start = start,
    .flush = [](aon_provider* p) { p->note("flush"); },
    .stop = [](aon_provider* p) { p->note("stop"); },
    .process_started =
        [](aon_provider* p, uint32_t process, int32_t pid, int32_t rank) {
          p->note("started " + std::to_string(process) + " " + std::to_string(pid) + " " +
                  std::to_string(rank));
        },
    .process_ended = [](aon_provider* p,
                        uint32_t process) { p->note("ended " + std::to_string(process)); },
    .tick = [](aon_provider* p, uint64_t ticks) { p->note("tick " + std::to_string(ticks)); },
    .message = nullptr,  // reserved
    .throttle = [](aon_provider* p,
                   uint32_t divisor) { p->note("throttle " + std::to_string(divisor)); },
};

class Loader : public testing::Test {
 protected:
  void SetUp() override {
    instance = {};
    start_result = AON_OK;
  }
  Provider make(const aon_provider_api& table = kTable) {
    Result<Provider> made = Provider::from_table(&table, AON_HOST_NODE, "test");
    EXPECT_TRUE(made);
    return std::move(made).value();
  }
  aon_core core_;
};

TEST_F(Loader, passes_the_life_of_a_job_on) {
  Provider provider = make();
  ASSERT_TRUE(provider.start(&core_, test::fake_core_api(), "a=1\n"));
  EXPECT_EQ(provider.state(), Provider::State::kRunning);
  provider.process_started(3, 77, 1);
  provider.tick(5);
  provider.process_ended(3);
  provider.flush();
  provider.stop();
  EXPECT_EQ(provider.state(), Provider::State::kStopped);
  EXPECT_THAT(instance.calls,
              ElementsAre("start a=1\n", "started 3 77 1", "tick 5", "ended 3", "flush", "stop"));
}

TEST_F(Loader, calls_nothing_before_start_and_after_stop) {
  Provider provider = make();
  provider.tick(1);
  provider.stop();
  ASSERT_TRUE(provider.start(&core_, test::fake_core_api(), ""));
  EXPECT_FALSE(provider.start(&core_, test::fake_core_api(), ""));
  provider.stop();
  provider.stop();
  provider.tick(2);
  EXPECT_THAT(instance.calls, ElementsAre("start ", "stop"));
}

TEST_F(Loader, takes_not_available_as_a_normal_result) {
  Provider provider = make();
  start_result = AON_UNAVAILABLE;
  const Status status = provider.start(&core_, test::fake_core_api(), "");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_EQ(provider.state(), Provider::State::kOff);
  provider.tick(1);
  provider.stop();
  EXPECT_THAT(instance.calls, ElementsAre("start "));
}

TEST_F(Loader, leaves_a_provider_that_throws_alone) {
  Provider provider = make();
  ASSERT_TRUE(provider.start(&core_, test::fake_core_api(), ""));
  instance.throws = true;
  provider.tick(1);
  EXPECT_EQ(provider.state(), Provider::State::kFailed);
  EXPECT_EQ(provider.failure(), "tick threw: broken on purpose");
  provider.tick(2);
  provider.stop();
  EXPECT_THAT(instance.calls, ElementsAre("start ", "tick 1"));
}

TEST_F(Loader, survives_a_start_that_throws) {
  Provider provider = make();
  instance.throws = true;
  const Status status = provider.start(&core_, test::fake_core_api(), "");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kBug);
  EXPECT_THAT(status.error().message, HasSubstr("broken on purpose"));
}

TEST_F(Loader, skips_functions_that_are_null) {
  aon_provider_api table = kTable;
  table.flush = nullptr;
  table.process_started = nullptr;
  table.process_ended = nullptr;
  table.tick = nullptr;
  Provider provider = make(table);
  ASSERT_TRUE(provider.start(&core_, test::fake_core_api(), ""));
  provider.process_started(1, 1, 1);
  provider.tick(1);
  provider.flush();
  provider.process_ended(1);
  provider.stop();
  EXPECT_THAT(instance.calls, ElementsAre("start ", "stop"));
}

TEST_F(Loader, tells_missing_files_from_bad_ones) {
  const Result<Provider> missing =
      Provider::load("/nonexistent/libaon-provider-x.so", AON_HOST_NODE, "/nonexistent");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  const Result<Provider> relative = Provider::load("x.so", AON_HOST_NODE, "/nonexistent");
  ASSERT_FALSE(relative);
  EXPECT_THAT(relative.error().message, HasSubstr("not an absolute path"));
}

}  // namespace
}  // namespace aon::provider
