// A program that "uses NCCL": fake_nccl CASE [VERSION [COUNT]]. The cases stand in kCases; one more
// plays calls that were recorded: fake_nccl replay FILE.calls.
#include <aon/nccl.h>
#include <aon/writer.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <memory>
#include <thread>

#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {
void bench(Plugin* plugin, int count);
void bench_steps(Plugin* plugin, int count);
void replay(const char* path);

namespace {

const Call kSend = {.function = "Send", .root = 1};

struct Run {
  Plugin plugin;
  Worker proxy;
  int count;
  Run(int version, int operations) : plugin(version), count(operations) {}

  Communicator world(const char* name = "world") {
    return {&plugin, &proxy, kId, world_size(), world_rank(), name};
  }
};

void allreduce(Run& run) {
  Communicator world = run.world();
  for (int i = 0; i < run.count; ++i) world.launch(Call{});
  world.finalize();
}

/// Each function once, 1024 floats; a pair of transfers with the next rank.
void every(Run& run) {
  Communicator world = run.world();
  for (const char* function : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"}) {
    world.launch({.function = function, .count = 1024, .root = 1});
  }
  const int peer = (world.rank() + 1) % world_size();
  world.launch(std::vector<Call>{{.function = "Send", .count = 1024, .root = peer},
                                 {.function = "Recv", .count = 1024, .root = peer}});
  world.finalize();
}

void with(Run& run, const Oddities& odd) {
  Communicator world = run.world();
  for (int i = 0; i < run.count; ++i) world.launch(Call{}, odd);
  world.finalize();
}
void double_stop(Run& run) { with(run, {.api_stops_twice = true}); }
void missing_stop(Run& run) { with(run, {.api_never_stops = true}); }
void no_work(Run& run) { with(run, {.work_never_starts = true}); }
void lone_stop(Run& run) { with(run, {.channels_stop_alone = true}); }
void missing_channels(Run& run) { with(run, {.missing_channels = 1}); }
void no_timer(Run& run) { with(run, {.no_timer = true}); }

void one_rank(Run& run) {
  Communicator alone(&run.plugin, &run.proxy, kId, 1, 0);
  for (int i = 0; i < run.count; ++i) alone.launch(Call{});
  alone.finalize();
}

void self_transfers(Run& run) {
  Communicator alone(&run.plugin, &run.proxy, kId, 1, 0);
  for (int i = 0; i < run.count; ++i)
    alone.launch({{.function = "Send", .channels = 1}, {.function = "Recv", .channels = 1}});
  alone.finalize();
}

/// Arguments that other versions, other processes and failed inits bring.
void junk(Run& run) {
  Communicator world = run.world();
  const Table& table = run.plugin.table();
  const int version = run.plugin.version();
  void* handle = reinterpret_cast<void*>(0x1234);
  Event event(version, version >= 5 ? kCollApi : kColl, nullptr, 0);
  event.put(24, "AllReduce").put(32, "AllReduce").put(40, "ncclFloat32").put(72, "ncclFloat32");
  event.put(88, "RING").put(96, "LL");
  std::printf("init %d\n", world.context() != nullptr);
  table.start(nullptr, &handle, event.data());
  std::printf("null context %p\n", handle);
  handle = reinterpret_cast<void*>(0x1234);
  table.start(world.context(), &handle, nullptr);
  std::printf("null event %p\n", handle);
  table.start(world.context(), nullptr, event.data());
  for (const uint64_t foreign : {0x1234ull, 0x7f0012345678ull, 0xffffffffffffffffull,
                                 reinterpret_cast<uint64_t>(world.context()) ^ (1ull << 60)}) {
    void* pointer = reinterpret_cast<void*>(foreign);
    table.stop(pointer);
    table.state(pointer, 22, nullptr);
    table.state(pointer, 24, nullptr);
    Event proxy(version, kProxyOp, pointer, 0);
    proxy.put(24, getpid() + 1).put(28, uint8_t{0});
    table.start(pointer, &handle, proxy.data());
    Event channel(version, kKernelCh, pointer, 0);
    channel.put(24, uint8_t{63}).put(32, uint64_t{1});
    table.start(pointer, &handle, channel.data());
    std::printf("foreign %p\n", handle);
    table.finalize(pointer);
  }
  table.stop(nullptr);
  table.state(nullptr, 22, nullptr);
  table.finalize(nullptr);
  world.launch(Call{});
  world.finalize();
  table.stop(world.context());
  table.finalize(world.context());  // once more
}

void no_finalize(Run& run) {
  auto* world = new Communicator(run.world());  // the proxy has it up to the end
  for (int i = 0; i < run.count; ++i) world->launch(Call{}, {.work_never_starts = i % 2 == 1});
}

/// Many communicators, a thread each; some of an id that was there before.
void communicators(Run& run) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&run, t] {
      for (int i = 0; i < 8; ++i) {
        const uint64_t id = kId + static_cast<uint64_t>(t);
        const std::string name = "comm " + std::to_string(t);
        Communicator mine(&run.plugin, &run.proxy, id, world_size(), world_rank(), name.c_str(),
                          true);
        for (int k = 0; k < run.count; ++k) mine.launch({.function = "AllGather", .count = 64});
        mine.finalize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// More at a time than the plugin has places for.
void crowd(Run& run) {
  std::vector<std::unique_ptr<Communicator>> all;
  for (int i = 0; i < 1030; ++i) {
    all.push_back(
        std::make_unique<Communicator>(&run.plugin, nullptr, kId + static_cast<uint64_t>(i), 2, 0));
  }
  for (const auto& one : all) one->launch(Call{});
  for (const auto& one : all) one->finalize();
}

/// Two ranks of one communicator in this process, as with a thread per GPU.
void two_ranks(Run& run) {
  Communicator first(&run.plugin, &run.proxy, kId, 2, 0, "both");
  Communicator second(&run.plugin, &run.proxy, kId, 2, 1, "both");
  for (int i = 0; i < run.count; ++i) {
    first.launch(Call{});
    second.launch(Call{});
  }
  first.finalize();
  second.finalize();
}

/// What ncclAlltoAll on `count` ranks is: as many sends and receives in one group.
void exchange(Run& run) {
  Communicator all(&run.plugin, &run.proxy, kId, run.count, 0);
  for (int round = 0; round < 2; ++round) {
    std::vector<Call> calls;
    for (int peer = 0; peer < run.count; ++peer) {
      calls.push_back({.function = "Send", .count = 16, .root = peer, .channels = 1});
      calls.push_back({.function = "Recv", .count = 16, .root = peer, .channels = 1});
    }
    all.launch(calls, {.gpu_ns = 100});
  }
  all.finalize();
}

/// A child that has its parent's handles, and then communicators of its own.
void forked(Run& run) {
  Communicator world = run.world();
  void* call = world.launch(Call{}, {.work_never_starts = true});
  const pid_t child = fork();
  if (child == 0) {
    run.plugin.stop(call);
    world.launch(Call{});  // with the parent's context
    Communicator own(&run.plugin, nullptr, kId + 1, 2, 0, "child");
    own.launch(Call{});
    own.launch(Call{});
    own.finalize();
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", status);
  world.launch(Call{});
  world.finalize();
}

/// The mask is switched while calls are under way.
void toggled(Run& run) {
  Communicator world = run.world();
  const int mask = run.plugin.mask();
  for (int i = 0; i < run.count; ++i) {
    run.plugin.set_mask(i % 2 == 0 ? mask : 0);
    world.launch(Call{});
  }
  run.plugin.set_mask(mask);
  world.finalize();
}

/// The word by which the budget sets the level.
std::atomic<uint32_t>& level_word() {
  auto* attach = reinterpret_cast<aon::Writer* (*)()>(dlsym(RTLD_DEFAULT, "aon_attach"));
  return const_cast<std::atomic<uint32_t>&>(attach()->modes[aon::kNcclProxySite]);
}

/// The budget lowers the level to api, and raises it again: each change is between two groups.
void relevelled(Run& run) {
  Communicator world = run.world();
  std::atomic<uint32_t>& mode = level_word();
  const uint32_t asked = mode;
  for (const uint32_t told :
       {asked, uint32_t{aon::kModeCount}, uint32_t{aon::kModeCount}, asked, asked}) {
    mode = told;
    world.launch({Call{}, Call{}});
    run.proxy.wait();
  }
  world.finalize();
}

/// Graphs are captured at levels gpu and api and launched again at api. Then gpu is asked for
/// again, where NCCL would wait for ever for channels: it has not counted what the second one
/// launches.
void graph_relevelled(Run& run) {
  Communicator world = run.world();
  std::atomic<uint32_t>& mode = level_word();
  const uint32_t asked = mode;
  const auto at_level = [&](uint32_t told) {
    mode = told;
    world.launch(Call{});  // from the next group on
    run.proxy.wait();
  };
  const Graph high = world.capture(Call{});
  at_level(aon::kModeCount);
  const Graph low = world.capture(Call{});
  for (int i = 0; i < run.count; ++i) world.replay(low);
  for (int i = 0; i < run.count; ++i) world.replay(high);
  at_level(asked);
  at_level(asked);
  world.finalize();
}

/// Three libraries of NCCL, the last one of another version. The budget lowers the level to api.
void libraries(Run& run) {
  Plugin second(run.plugin.version());
  Plugin newest(7);
  Communicator world = run.world();
  Communicator other(&second, &run.proxy, kId + 1, 2, 0, "other");
  Communicator last(&newest, &run.proxy, kId + 2, 2, 0, "last");
  level_word() = uint32_t{aon::kModeCount};
  for (Communicator* one : {&world, &other, &last}) {
    one->launch(Call{});
    run.proxy.wait();
  }
  std::printf("%x %x %x\n", run.plugin.mask(), second.mask(), newest.mask());
  for (Communicator* one : {&world, &other, &last}) one->finalize();
}

/// Channels are taken from the mask and put back, as NCCL's RAS can, behind the plugin's back.
void unmasked(Run& run) {
  Communicator world = run.world();
  const int mask = run.plugin.mask();
  for (const int now : {mask, mask & ~static_cast<int>(kKernelCh), mask}) {
    run.plugin.set_mask(now);
    for (int i = 0; i < run.count; ++i) world.launch(Call{});
    run.proxy.wait();
  }
  world.finalize();
}

/// The second of three transfers is sent while COUNT threads have the slots that there are.
void slotless(Run& run) {
  auto* attach = reinterpret_cast<aon::Writer* (*)()>(dlsym(RTLD_DEFAULT, "aon_attach"));
  Communicator world = run.world();
  world.launch(kSend);
  std::latch attached(run.count);
  std::latch done(1);
  std::vector<std::thread> others;
  for (int i = 0; i < run.count; ++i) {
    others.emplace_back([&] {
      attach();
      attached.count_down();
      done.wait();
    });
  }
  attached.wait();
  std::thread([&] { world.launch(kSend); }).join();
  done.count_down();
  for (std::thread& other : others) other.join();
  world.launch(kSend);
  world.finalize();
}

/// Nothing is recorded for a while.
void paused(Run& run) {
  using SetPaused = void (*)(bool);
  auto* set_paused = reinterpret_cast<SetPaused>(dlsym(RTLD_DEFAULT, "aon_set_paused"));
  Communicator world = run.world();
  world.launch(Call{});
  if (set_paused != nullptr) set_paused(true);
  for (int i = 0; i < run.count; ++i) world.launch(Call{});
  if (set_paused != nullptr) set_paused(false);
  world.launch(Call{});
  world.launch(Call{});
  world.finalize();
}

/// Ends at once with operations on the GPU.
void killed(Run& run) {
  Communicator world = run.world();
  for (int i = 0; i < run.count; ++i) world.launch(Call{}, {.never_ends = true});
  std::_Exit(0);
}

/// What the proxy does: plainly, behind a GPU that is late with its first data, for another
/// process, and with stops that never come.
void proxy(Run& run) { with(run, {}); }
void late_data(Run& run) { with(run, {.gpu_wait_us = 20'000}); }
void foreign_proxy(Run& run) { with(run, {.is_foreign = true}); }
void lost_steps(Run& run) { with(run, {.steps = 40, .loses_stops = true}); }

/// Ends as a watchdog of PyTorch ends it: ncclCommAbort with operations in flight, then abort().
void aborted(Run& run) {
  Communicator world = run.world();
  for (int i = 0; i < run.count; ++i) world.launch(Call{}, {.never_ends = true});
  run.proxy.wait();
  world.finalize();
  std::abort();
}

/// The same by exit(), without finalize.
void left(Run& run) {
  auto* world = new Communicator(run.world());
  for (int i = 0; i < run.count; ++i) world->launch(Call{}, {.never_ends = true});
  run.proxy.wait();
  std::exit(3);
}

/// COUNT communicators, one after the other, one per ms at most, with an AllReduce in each.
void many(Run& run) {
  for (int i = 0; i < run.count; ++i) {
    const uint64_t id = kId + static_cast<uint64_t>(i);
    Communicator one(&run.plugin, &run.proxy, id, world_size(), world_rank());
    one.launch(Call{}, {.gpu_ns = 2000});
    one.finalize();
    sleep_ms(1);
  }
}

/// At most one AllReduce per ms, until the file FAKE_NCCL_UNTIL is there.
void busy(Run& run) {
  const char* until = std::getenv("FAKE_NCCL_UNTIL");
  Communicator world(&run.plugin, &run.proxy, kId, 2, 0, "world");
  for (int i = 0; i < run.count && (until == nullptr || access(until, F_OK) != 0); ++i) {
    world.launch(Call{}, {.steps = 1});
    run.proxy.wait();
    sleep_ms(1);
  }
  world.finalize();
}

struct Case {
  const char* name;
  void (*run)(Run& run);
};
constexpr Case kCases[] = {
    {"many", many},
    {"allreduce", allreduce},
    {"every", every},
    {"double_stop", double_stop},
    {"missing_stop", missing_stop},
    {"no_work", no_work},
    {"lone_stop", lone_stop},
    {"missing_channels", missing_channels},
    {"no_timer", no_timer},
    {"graph", [](Run& run) { graph(&run.plugin, &run.proxy, run.count, Call{}); }},
    {"one_rank", one_rank},
    {"junk", junk},
    {"no_finalize", no_finalize},
    {"communicators", communicators},
    {"crowd", crowd},
    {"two_ranks", two_ranks},
    {"exchange", exchange},
    {"self_transfers", self_transfers},
    {"fork", forked},
    {"toggled", toggled},
    {"slotless", slotless},
    {"paused", paused},
    {"train", [](Run& run) { train(&run.plugin, &run.proxy, run.count); }},
    {"killed", killed},
    {"proxy", proxy},
    {"late_data", late_data},
    {"busy", busy},
    {"foreign_proxy", foreign_proxy},
    {"lost_steps", lost_steps},
    {"aborted", aborted},
    {"left", left},
    {"relevelled", relevelled},
    {"graph_relevelled", graph_relevelled},
    {"unmasked", unmasked},
    {"libraries", libraries},
    {"copy_engines", [](Run& run) { copy_engines(&run.plugin, run.count); }},
    {"reloaded", [](Run& run) { reloaded(&run.plugin, run.count); }},
    {"graph_send", [](Run& run) { graph(&run.plugin, &run.proxy, run.count, kSend); }},
    {"graph_symmetric",
     [](Run& run) { graph(&run.plugin, &run.proxy, run.count, {.is_symmetric = true}); }},
    {"late_proxy", [](Run& run) { late_proxies(&run.plugin, &run.proxy, run.count, false); }},
    {"late_proxies", [](Run& run) { late_proxies(&run.plugin, &run.proxy, run.count, true); }},
    {"bench", [](Run& run) { bench(&run.plugin, run.count); }},
    {"bench_steps", [](Run& run) { bench_steps(&run.plugin, run.count); }},
};

}  // namespace
}  // namespace aon::test::nccl

int main(int argc, char** argv) {
  using namespace aon::test::nccl;
  if (argc == 3 && std::strcmp(argv[1], "replay") == 0) {
    replay(argv[2]);
    return 0;
  }
  for (const Case& known : kCases) {
    if (argc < 2 || std::strcmp(known.name, argv[1]) != 0) continue;
    Run run(argc > 2 ? std::atoi(argv[2]) : 7, argc > 3 ? std::atoi(argv[3]) : 1);
    known.run(run);
    run.proxy.wait();
    return 0;
  }
  std::fprintf(stderr, "fake_nccl CASE [VERSION [COUNT]] or fake_nccl replay FILE.calls\n");
  return 2;
}
