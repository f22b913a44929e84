// Ways of NCCL that other cases do not take: copy engines, a library that comes again, and a proxy
// that comes late.
#include <memory>

#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {

/// COUNT times an AllGather and an AlltoAll by copy engines, and an AllGather by a kernel; then one
/// by copy engines that a graph has captured.
void copy_engines(Plugin* plugin, int count) {
  Communicator world(plugin, nullptr, 0xce, 2, 0, "world");
  for (int i = 0; i < count; ++i) {
    world.launch({.function = "AllGather", .count = 1024}, {.copy_engines = true});
    world.launch({.function = "AlltoAll", .count = 64}, {.copy_engines = true});
    world.launch({.function = "AllGather", .count = 16});
  }
  world.launch({.function = "AllGather"}, {.graph_captured = true, .copy_engines = true});
  world.finalize();
}

/// A communicator with COUNT operations, then NCCL closes the plugin, and all of it once more.
void reloaded(Plugin* plugin, int count) {
  for (int round = 0; round < 2; ++round) {
    if (round != 0) plugin->reload();
    Communicator world(plugin, nullptr, 0xd1, 2, 0, "world");
    for (int i = 0; i < count; ++i) world.launch(Call{});
    world.finalize();
  }
}

/// A call is captured, launched COUNT times, and made once more.
void graph(Plugin* plugin, Worker* proxy, int count, const Call& call) {
  Communicator world(plugin, proxy, 0x9a, 2, 0, "world");
  const Graph captured = world.capture(call);
  for (int i = 0; i < count; ++i) world.replay(captured);
  world.launch(call);
  world.finalize();
}

/// COUNT AllReduces, one each 10 us, that have all run when the proxy reads the first: NCCL keeps
/// the times of a channel's last 64.
/// `has_other`: a second communicator makes them, too, in the groups of the first.
void late_proxies(Plugin* plugin, Worker* proxy, int count, bool has_other) {
  constexpr int kKept = 64;
  constexpr uint64_t kEach_ns = 10'000;
  Communicator world(plugin, proxy, 0x1a7e, 2, 0, "world");
  std::unique_ptr<Communicator> other;
  if (has_other) other = std::make_unique<Communicator>(plugin, proxy, 0x1a7f, 2, 0, "other");
  const uint64_t first_ns = gpu_now_ns() - kEach_ns * static_cast<unsigned>(count);
  for (int i = 0; i < count; ++i) {
    const int told = i + (count - 1 - i) / kKept * kKept;
    world.launch({Call{}},
                 {.gpu_ns = 5000, .begin_ns = first_ns + kEach_ns * static_cast<unsigned>(told)},
                 other.get());
  }
  if (other) other->finalize();
  world.finalize();
}

}  // namespace aon::test::nccl
