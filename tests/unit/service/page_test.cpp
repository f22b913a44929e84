// The service and its readers through a real socket.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/packet.h"
#include "core/service/page_reader.h"
#include "core/service/server.h"
#include "tests/unit/temporary_folder.h"

namespace aon::service {
namespace {

/// A provider with a count that grows by 10 with each tick, and a second series from the third on.
struct Fake {
  aon_core* core = nullptr;
  const aon_core_api* api = nullptr;
  int ticks = 0;
  std::function<void()> on_tick;
} g_fake;

void fake_tick(aon_provider*, uint64_t now_ticks) {
  Fake& f = g_fake;
  ++f.ticks;
  if (f.on_tick) f.on_tick();
  const uint32_t energy = f.api->define_metric(f.core, AON_PROCESS_NODE, "joules", "J",
                                               "what it took", AON_METRIC_ACCUMULATED);
  f.api->sample(f.core, AON_PROCESS_NODE, energy, now_ticks, 10.0 * f.ticks, 7, 5);
  if (f.ticks < 3) return;
  const uint32_t power =
      f.api->define_metric(f.core, AON_PROCESS_NODE, "power", "W", "now", AON_METRIC_ABSOLUTE);
  f.api->sample(f.core, AON_PROCESS_NODE, power, now_ticks, 1.5, 0, 0);
}

constexpr aon_provider_api kFake = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 3'600'000,  // ticks come from the tests
    .name = "fake",
    .description = "for tests",
    .start =
        [](aon_core* core, const aon_core_api* api, aon_host, const char*, aon_provider** self) {
          g_fake = {core, api, 0, nullptr};
          *self = reinterpret_cast<aon_provider*>(&g_fake);
          EXPECT_EQ(api->define_metric(core, 7, "of a process", "1", "", AON_METRIC_ABSOLUTE),
                    AON_NO_ID);
          api->set_state(core, AON_PROCESS_NODE, AON_STATE_DEGRADED, "only half", "all of it");
          return AON_OK;
        },
    .flush = nullptr,
    .stop = [](aon_provider*) {},
    .process_started = nullptr,
    .process_ended = nullptr,
    .tick = fake_tick,
    .message = nullptr,
};

constexpr aon_provider_api kNothing = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 100,
    .name = "nothing",
    .description = "for tests",
    .start =
        [](aon_core* core, const aon_core_api* api, aon_host, const char*, aon_provider**) {
          api->set_state(core, AON_PROCESS_NODE, AON_STATE_OFF, "no such device", "buy one");
          return AON_UNAVAILABLE;
        },
    .flush = nullptr,
    .stop = [](aon_provider*) { ADD_FAILURE() << "stopped without having started"; },
    .process_started = nullptr,
    .process_ended = nullptr,
    .tick = [](aon_provider*, uint64_t) { ADD_FAILURE() << "a tick without a start"; },
    .message = nullptr,
};

provider::Provider provider_of(const aon_provider_api* table) {
  auto provider = provider::Provider::from_table(table, AON_HOST_NODE, "/here");
  EXPECT_TRUE(provider);
  return std::move(*provider);
}

class PageTest : public testing::Test {
 protected:
  PageTest() {
    auto publisher = Publisher::create();
    EXPECT_TRUE(publisher);
    publisher_ = std::move(*publisher);
    publisher_->add(provider_of(&kFake));
    publisher_->add(provider_of(&kNothing));
    EXPECT_EQ(::pipe2(stop_, O_CLOEXEC), 0);
  }
  ~PageTest() override {
    stop();
    ::close(stop_[0]);
    ::close(stop_[1]);
  }

  void serve(std::optional<CrashLog> log = std::nullopt) {
    auto listener = listen_at(path_);
    ASSERT_TRUE(listener);
    server_ = std::make_unique<Server>(std::move(*listener), publisher_.get(), std::move(log));
    thread_ = std::thread([this] { server_->run(stop_[0]); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(::write(stop_[1], "x", 1), 1);
    thread_.join();
    server_.reset();
  }
  std::unique_ptr<PageReader> reader() {
    auto page = PageReader::connect(path_);
    EXPECT_TRUE(page) << page.error().message;
    return page ? std::move(*page) : nullptr;
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_.path("run/node.sock");
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  int stop_[2];
};

TEST_F(PageTest, reads_what_providers_say) {
  serve();
  const auto page = reader();
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->is_alive());
  const auto fake = page->provider("fake");
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->state, static_cast<uint32_t>(AON_STATE_DEGRADED));
  EXPECT_EQ(fake->reason, "only half");
  EXPECT_EQ(fake->remedy, "all of it");
  const auto nothing = page->provider("nothing");
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->state, static_cast<uint32_t>(AON_STATE_OFF));
  EXPECT_EQ(nothing->reason, "no such device");
  EXPECT_FALSE(page->provider("other"));
  // It read when the first reader came.
  const auto series = page->series(fake->index, 0);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].name, "joules");
  EXPECT_EQ(series[0].unit, "J");
  EXPECT_EQ(series[0].description, "what it took");
  const auto sample = page->sample(series[0].index);
  ASSERT_TRUE(sample);
  EXPECT_TRUE(sample->value == 10 || sample->value == 20) << sample->value;  // once more by now
  EXPECT_EQ(sample->enabled_ns, 7u);
  EXPECT_EQ(sample->running_ns, 5u);
}

TEST_F(PageTest, series_that_come_later) {
  serve();
  const auto page = reader();
  ASSERT_TRUE(page);
  const uint32_t fake = page->provider("fake")->index;
  ASSERT_EQ(page->series(fake, 0).size(), 1u);
  stop();
  for (int i = 0; i < 3; ++i) publisher_->tick_all();
  const auto later = page->series(fake, page->series(fake, 0)[0].index + 1);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].name, "power");
  EXPECT_EQ(later[0].mode, static_cast<uint32_t>(AON_METRIC_ABSOLUTE));
}

TEST_F(PageTest, reads_only_while_somebody_is_there) {
  serve();
  reader();
  reader();  // the first has gone: what it counted from is not what this one does
  stop();
  EXPECT_LE(g_fake.ticks, 3);
  EXPECT_GE(g_fake.ticks, 1);
}

TEST_F(PageTest, end_of_the_service_is_seen) {
  serve();
  const auto page = reader();
  ASSERT_TRUE(page);
  stop();
  EXPECT_FALSE(page->is_alive());
  EXPECT_TRUE(page->provider("fake"));
  EXPECT_FALSE(PageReader::connect(path_));
}

/// One user cannot take all places, nor keep the service awake.
TEST_F(PageTest, many_readers_of_one_user) {
  serve();
  std::vector<std::unique_ptr<PageReader>> readers;
  for (size_t i = 0; i < kMaxReadersOfUser; ++i) readers.push_back(reader());
  EXPECT_FALSE(PageReader::connect(path_));
  readers.pop_back();
  while (!PageReader::connect(path_)) {  // until the service has seen that one left
  }
}

/// Nor keep it from those who are there by coming again and again.
TEST_F(PageTest, newcomers_come_some_at_a_time) {
  auto listener = listen_at(path_);
  ASSERT_TRUE(listener);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 3 * kMostAccepted; ++i) {
    crowd.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(
        ::connect(crowd.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
        0);
  }
  const auto is_served = [](const UniqueFd& one) {
    pollfd answer{one.get(), POLLIN, 0};
    return ::poll(&answer, 1, 0) == 1;
  };
  std::vector<std::ptrdiff_t> served;  // at each tick: before the first one, then after a turn
  g_fake.on_tick = [&] { served.push_back(std::count_if(crowd.begin(), crowd.end(), is_served)); };
  server_ = std::make_unique<Server>(std::move(*listener), publisher_.get(), std::nullopt);
  thread_ = std::thread([this] { server_->run(stop_[0]); });
  pollfd last{crowd.back().get(), POLLIN, 0};
  EXPECT_EQ(::poll(&last, 1, 20'000), 1);
  stop();
  g_fake.on_tick = nullptr;
  ASSERT_GE(served.size(), 2u);
  EXPECT_EQ(served[0], 0);
  EXPECT_LE(served[1], kMostAccepted);
}

TEST_F(PageTest, folder_that_others_may_write_to) {
  ASSERT_EQ(::mkdir(folder_.path("run").c_str(), 0777), 0);
  ASSERT_EQ(::chmod(folder_.path("run").c_str(), 0777), 0);
  const auto listener = listen_at(path_);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Code::kUnavailable);
}

TEST_F(PageTest, nobody_else_can_write) {
  void* memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, publisher_->page_fd(), 0);
  EXPECT_EQ(memory, MAP_FAILED);
  EXPECT_NE(::ftruncate(publisher_->page_fd(), 0), 0);
}

/// A memory file has all permissions of a file: whoever has it can open it again to write.
TEST_F(PageTest, nobody_else_can_write_who_opens_it_again) {
  const std::string name = "/proc/self/fd/" + std::to_string(publisher_->page_fd());
  const UniqueFd again(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again);
  EXPECT_EQ(::pwrite(again.get(), "x", 1, 0), -1);
  EXPECT_NE(::ftruncate(again.get(), 2 * sizeof(Page)), 0);
  EXPECT_NE(::fallocate(again.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  EXPECT_NE(::fcntl(again.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(::mmap(nullptr, sizeof(Page), PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ, MAP_SHARED, again.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_NE(::mprotect(memory, sizeof(Page), PROT_READ | PROT_WRITE), 0);
  ::munmap(memory, sizeof(Page));
}

TEST_F(PageTest, second_service_is_refused) {
  serve();
  const auto second = listen_at(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy);
  stop();
  EXPECT_TRUE(listen_at(path_));  // the socket that was left is replaced
}

TEST_F(PageTest, no_service) {
  EXPECT_EQ(PageReader::connect(path_).error().code, Code::kNotFound);
  EXPECT_EQ(PageReader::connect("").error().code, Code::kUnavailable);
}

TEST_F(PageTest, socket_that_others_may_have_put) {
  serve();
  ASSERT_EQ(::chmod(folder_.path("run").c_str(), 0777), 0);
  EXPECT_EQ(PageReader::connect(path_).error().code, Code::kUnavailable);
}

/// Somebody with the right place and the wrong words.
class Impostor {
 public:
  Impostor(const std::string& path, int page_fd, PageHello hello) {
    auto listener = listen_at(path);
    EXPECT_TRUE(listener);
    listener_ = std::move(*listener);
    thread_ = std::thread([this, page_fd, hello] { answer(page_fd, hello); });
  }
  ~Impostor() { thread_.join(); }

 private:
  void answer(int page_fd, PageHello hello) {
    pollfd_wait();
    const UniqueFd reader(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(send_struct(reader.get(), hello, {&page_fd, 1}));
    char byte = 0;
    EXPECT_EQ(::recv(reader.get(), &byte, 1, 0), 0);  // it hangs up
  }
  void pollfd_wait() {
    pollfd ready{listener_.socket.get(), POLLIN, 0};
    ::poll(&ready, 1, -1);
  }

  Listener listener_;
  std::thread thread_;
};

TEST_F(PageTest, page_that_could_shrink_or_is_another) {
  const UniqueFd unsealed(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), sizeof(Page)), 0);
  const PageHello right{kPageMagic, kPageVersion, sizeof(Page)};
  const PageHello wrong{kPageMagic, kPageVersion + 1, sizeof(Page)};
  {
    const Impostor impostor(path_, unsealed.get(), right);
    EXPECT_EQ(PageReader::connect(path_).error().code, Code::kUnavailable);
  }
  const Impostor impostor(path_, publisher_->page_fd(), wrong);
  EXPECT_EQ(PageReader::connect(path_).error().code, Code::kUnavailable);
}

TEST_F(PageTest, crashes_come_once) {
  publisher_->add_crash(1, 0x10000001);
  serve();
  const auto page = reader();
  ASSERT_TRUE(page);
  EXPECT_FALSE(page->has_log());
  EXPECT_TRUE(page->crashes().empty());  // before our time
  for (int i = 0; i < 3; ++i) publisher_->add_crash(100 + i, 0x20000000u + i);
  const auto crashes = page->crashes();
  ASSERT_EQ(crashes.size(), 3u);
  EXPECT_EQ(crashes[2].tid, 102);
  EXPECT_EQ(place_text(crashes[2].place), "libaon-mpi.so+0x2");
  EXPECT_TRUE(page->crashes().empty());
  for (uint32_t i = 0; i < kCrashCount + 5; ++i) publisher_->add_crash(200, i);
  EXPECT_EQ(page->crashes().size(), kCrashCount);  // the newest
}

TEST_F(PageTest, lines_of_the_log_become_crashes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  serve(CrashLog{UniqueFd(ends[0])});
  const auto page = reader();
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->has_log());
  const std::string line = "app[31]: segfault at 8 ip 7 sp 7 error 4 in libaon.so[12,7+5000]\n";
  ASSERT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
  std::vector<Crash> crashes;
  while (crashes.empty()) crashes = page->crashes();
  EXPECT_EQ(crashes[0].tid, 31);
  EXPECT_EQ(place_text(crashes[0].place), "libaon.so+0x12");
  ::close(ends[1]);
}

}  // namespace
}  // namespace aon::service
