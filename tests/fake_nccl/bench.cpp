// What a callback costs: the twelve of an eager AllReduce, each timed on its own with descriptors
// that are made before, and once more into functions that do nothing, which is what the clock and
// the calls cost themselves. A line per kind: NAME MEDIAN P99.9, in ns; tests/bench/nccl reads it.
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {

void bench(Plugin* plugin, int count);

namespace {

constexpr size_t kKinds = 12;
constexpr std::array<const char*, kKinds> kNames = {
    "GroupApi",   "GroupStartStop", "CollApi", "CollApiStop", "GroupEndStart", "KernelLaunch",
    "LaunchStop", "Group",          "Coll",    "CollStop",    "GroupStop",     "GroupApiStop"};

int no_start(void*, void** handle, void*) {
  *handle = nullptr;
  return 0;
}
int no_stop(void*) { return 0; }
int no_state(void*, int, void*) { return 0; }
constexpr Table kNothing = {"nothing", nullptr, no_start, no_stop, no_state, no_stop};

uint64_t raw_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

using Times = std::array<std::vector<uint32_t>, kKinds + 1>;  ///< the last: all kinds together

/// One group with one AllReduce.
class Group {
 public:
  Group(const Table& table, void* context, int version)
      : table_(table),
        context_(context),
        group_api_(version, kGroupApi, nullptr, 0),
        coll_api_(version, kCollApi, nullptr, 0),
        launch_(version, kKernelLaunch, nullptr, 0),
        group_(version, kGroup, nullptr, 0),
        coll_(version, kColl, nullptr, 0) {
    coll_api_.put(24, "AllReduce").put(32, uint64_t{1} << 20).put(40, "ncclFloat32");
    coll_api_.put(48, 0).put(64, false);
    coll_.put(24, uint64_t{0}).put(32, "AllReduce").put(56, uint64_t{1} << 20).put(64, 0);
    coll_.put(72, "ncclFloat32").put(80, uint8_t{2}).put(88, "RING").put(96, "SIMPLE");
  }

  void run(Times* times) {
    kind_ = 0;
    times_ = times;
    void* group = start(group_api_);
    state(group, 23);
    void* api = start(coll_api_);
    stop(api);
    state(group, 24);
    void* launch = start(launch_);
    stop(launch);
    void* old = start(group_);
    coll_.put(8, api);
    void* coll = start(coll_);
    stop(coll);
    stop(old);
    stop(group);
  }

 private:
  template <class Call>
  void time(Call call) {
    const uint64_t begin = __rdtsc();
    call();
    unsigned int ignored;
    const uint32_t took = static_cast<uint32_t>(__rdtscp(&ignored) - begin);
    (*times_)[kind_++].push_back(took);
    times_->back().push_back(took);
  }
  void* start(Event& event) {
    void* handle = nullptr;
    time([&] { table_.start(context_, &handle, event.data()); });
    return handle;
  }
  void stop(void* handle) {
    time([&] { table_.stop(handle); });
  }
  void state(void* handle, int number) {
    time([&] { table_.state(handle, number, nullptr); });
  }

  const Table& table_;
  void* context_;
  Event group_api_, coll_api_, launch_, group_, coll_;
  size_t kind_ = 0;
  Times* times_ = nullptr;
};

void print(const char* prefix, const char* name, std::vector<uint32_t>& ticks, double ns_per_tick) {
  std::sort(ticks.begin(), ticks.end());
  std::printf("%s%s %.2f %.2f\n", prefix, name, ticks[ticks.size() / 2] * ns_per_tick,
              ticks[ticks.size() * 999 / 1000] * ns_per_tick);
}

}  // namespace

void bench(Plugin* plugin, int count) {
  void* context = plugin->init(0xbe9c, "bench", 2, 0);
  Group ours(plugin->table(), context, plugin->version());
  Group nothing(kNothing, nullptr, plugin->version());
  Times own;
  Times empty;
  for (auto* times : {&own, &empty}) {
    for (auto& kind : *times) kind.reserve(static_cast<size_t>(count) * kKinds);
  }
  const uint64_t begin_ticks = __rdtsc();
  const uint64_t begin_ns = raw_ns();
  for (int i = 0; i < count; ++i) {
    ours.run(&own);
    nothing.run(&empty);
  }
  const double ns_per_tick =
      static_cast<double>(raw_ns() - begin_ns) / static_cast<double>(__rdtsc() - begin_ticks);
  for (size_t kind = 0; kind < kKinds; ++kind) {
    print("", kNames[kind], own[kind], ns_per_tick);
    print("nothing.", kNames[kind], empty[kind], ns_per_tick);
  }
  print("", "all", own.back(), ns_per_tick);
  print("nothing.", "all", empty.back(), ns_per_tick);
  plugin->finalize(context);
}

}  // namespace aon::test::nccl
