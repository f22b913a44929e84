#include "core/agent/shared_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "core/service/server.h"
#include "tests/unit/temporary_folder.h"

namespace aon::agent {
namespace {

struct Source {
  aon_core* core = nullptr;
  const aon_core_api* api = nullptr;
  std::atomic<double> count = 100;  ///< read by the server's thread
} g_source;

constexpr aon_provider_api kSource = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 3'600'000,
    .name = "source",
    .description = "for tests",
    .start =
        [](aon_core* core, const aon_core_api* api, aon_host, const char*, aon_provider** self) {
          g_source.core = core;
          g_source.api = api;
          *self = reinterpret_cast<aon_provider*>(&g_source);
          return AON_OK;
        },
    .flush = nullptr,
    .stop = [](aon_provider*) {},
    .process_started = nullptr,
    .process_ended = nullptr,
    .tick =
        [](aon_provider*, uint64_t now_ticks) {
          const auto& [core, api, counted] = g_source;
          const double count = counted;
          const uint32_t joules = api->define_metric(core, AON_PROCESS_NODE, "joules", "J", "text",
                                                     AON_METRIC_ACCUMULATED);
          api->sample(core, AON_PROCESS_NODE, joules, now_ticks, count, 10, 5);
          const uint32_t watts =
              api->define_metric(core, AON_PROCESS_NODE, "watts", "W", "text", AON_METRIC_ABSOLUTE);
          api->sample(core, AON_PROCESS_NODE, watts, now_ticks, count, 0, 0);
        },
    .message = nullptr,
};

/// What the agent was told.
struct Told {
  std::map<std::string, uint32_t> metrics;
  std::map<uint32_t, std::vector<double>> values;
  std::string reason;
};

aon_core_api table() {
  aon_core_api api{};
  api.define_metric = [](aon_core* core, uint32_t, const char* name, const char*, const char*,
                         aon_metric_mode) {
    auto& metrics = reinterpret_cast<Told*>(core)->metrics;
    return metrics.emplace(name, metrics.size()).first->second;
  };
  api.sample = [](aon_core* core, uint32_t, uint32_t metric, uint64_t, double value, uint64_t,
                  uint64_t) { reinterpret_cast<Told*>(core)->values[metric].push_back(value); };
  api.set_state = [](aon_core* core, uint32_t, aon_state, const char* reason, const char*) {
    reinterpret_cast<Told*>(core)->reason = reason;
  };
  return api;
}

TEST(SharedMetrics, counts_begin_at_zero_and_the_end_is_told) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("run/node.sock");
  auto created = service::Publisher::create();
  ASSERT_TRUE(created);
  const std::unique_ptr<service::Publisher> publisher = std::move(*created);
  auto source = provider::Provider::from_table(&kSource, AON_HOST_NODE, "/here");
  ASSERT_TRUE(source);
  publisher->add(std::move(*source));
  auto listener = service::listen_at(path);
  ASSERT_TRUE(listener);
  int stop[2];
  ASSERT_EQ(::pipe(stop), 0);
  auto server =
      std::make_unique<service::Server>(std::move(*listener), publisher.get(), std::nullopt);
  std::thread thread([&] { server->run(stop[0]); });
  auto page = service::PageReader::connect(path);
  ASSERT_TRUE(page) << page.error().message;

  Told told;
  auto* core = reinterpret_cast<aon_core*>(&told);
  const aon_core_api api = table();
  SharedMetrics metrics(page->get(), (*page)->provider("source")->index);
  metrics.start(AON_STATE_ON);
  metrics.tick(core, api, 1);
  metrics.tick(core, api, 1);  // nothing new: nothing said
  g_source.count = 130;
  publisher->tick_all();
  metrics.tick(core, api, 1);
  // The server has beats of its own: between these there may be one more.
  const std::vector<double>& joules = told.values[told.metrics.at("joules")];
  EXPECT_EQ(joules.front(), 0);
  EXPECT_EQ(joules.back(), 30);
  const std::vector<double>& watts = told.values[told.metrics.at("watts")];
  EXPECT_EQ(watts.front(), 100);
  EXPECT_EQ(watts.back(), 130);
  EXPECT_EQ(told.reason, "");
  metrics.tick(core, api, 100'000'000'000);
  EXPECT_NE(told.reason.find("nothing for a minute"), std::string::npos);
  publisher->tick_all();
  metrics.tick(core, api, 101'000'000'000);
  EXPECT_EQ(told.reason, "");

  ASSERT_EQ(::write(stop[1], "x", 1), 1);
  thread.join();
  server.reset();
  metrics.tick(core, api, 1);
  const size_t told_count = told.values[0].size();
  metrics.tick(core, api, 1);
  EXPECT_NE(told.reason.find("service has ended"), std::string::npos);
  EXPECT_EQ(told.values[0].size(), told_count);
  ::close(stop[0]);
  ::close(stop[1]);
}

}  // namespace
}  // namespace aon::agent
