// Ways of NCCL that other cases do not take: copy engines, and a library that comes again.
#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {

void copy_engines(Plugin* plugin, int count);
void reloaded(Plugin* plugin, int count);

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

}  // namespace aon::test::nccl
