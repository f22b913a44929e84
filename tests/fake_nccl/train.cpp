// Training: what many ranks do together, with one of them at fault.
#include <aon/annotate.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kLateMs = 20;
constexpr int kLateUs = 20'000;

/// "RANK:STEP:how" of a variable; rank -1: nobody. Of a list, "FAULT,FAULT", that of rank `own`
/// where it has one, else the first.
struct Fault {
  int rank = -1;
  int step = 0;
  char how[16] = "";
  explicit Fault(const char* variable, int own = -1) {
    for (const char* text = std::getenv(variable); text != nullptr;) {
      Fault next;
      std::sscanf(text, "%d:%d:%15[^,]", &next.rank, &next.step, next.how);
      if (rank == -1 || next.rank == own) *this = next;
      text = std::strchr(text, ',');
      if (text != nullptr) ++text;
    }
  }
  bool is(const char* word) const { return std::strcmp(how, word) == 0; }

 private:
  Fault() = default;
};

/// The end of a program that hangs; by that name a stack shows it.
[[gnu::noinline]] void wait_for_the_gpu_for_ever() {
  asm volatile("nop");  // or it would be one function with the next
  for (;;) pause();
}
[[gnu::noinline]] void compute_for_ever() {
  for (;;) pause();
}

/// The operation of all ranks. Steps that run side by side wait longer than it is late; longer than
/// a busy machine lets others sleep.
void slow_down(const Fault& network, int step, int own, Oddities* odd) {
  if (network.rank < 0 || step < network.step) return;
  odd->gpu_ns += kLateMs * kMs;
  const bool is_next = own == (network.rank + 1) % world_size();
  const bool is_sending = network.is("all") || (!network.is("gpu") && own == network.rank);
  odd->takes_late = network.is("taker") && is_next;
  (is_sending ? odd->network_wait_us : odd->gpu_wait_us) = 5 * kLateUs;
  if (!network.is("queued")) return;
  odd->is_queued = true;
  odd->queued_ns = 3 * kLateMs * kMs;
  odd->gpu_wait_us += 3 * kLateUs;
}

}  // namespace

/// COUNT steps of an AllReduce and a transfer to the next rank, each waited for.
///
///     FAKE_NCCL_LATE=RANK:STEP:host|gpu,...  20 ms late to AllReduces from STEP on, with others
///     FAKE_NCCL_LINK=RANK:0            its transfers to the next rank take 20 times the time
///     FAKE_NCCL_NETWORK=RANK:STEP:link|all|gpu  AllReduces from STEP on take 20 ms longer: its
///                                  sends wait for the network and others' for their GPUs; or all
///                                  for the network, or all for their GPUs
///     FAKE_NCCL_NETWORK=RANK:STEP:queued|taker  as link, with kernels queued for 60 ms; or as the
///                                  next rank's GPU does not take what it sends
///     FAKE_NCCL_HANG=RANK:STEP:skip|other   does not come to that AllReduce, or calls another
///     FAKE_NCCL_HANG=RANK:STEP:order|bytes  swaps it with an AllGather, or halves its elements
///     FAKE_NCCL_HANG=RANK:STEP:lone         does not come to its transfers
///     FAKE_NCCL_HANG=RANK:STEP:all          calls it as all others; it ends nowhere
///     FAKE_NCCL_WATCHDOG=MS            of such a hang the others abort their communicator, and end
void train(Plugin* plugin, Worker* proxy, int count) {
  const Fault late("FAKE_NCCL_LATE", world_rank());
  const Fault link("FAKE_NCCL_LINK");
  const Fault network("FAKE_NCCL_NETWORK");
  const Fault hang("FAKE_NCCL_HANG");
  Communicator world(plugin, proxy, kId, world_size(), world_rank(), "world");
  const int own = world.rank();
  const int next = (own + 1) % world_size();
  const int previous = (own + world_size() - 1) % world_size();
  for (int step = 0; step < count; ++step) {
    aon_step_begin(step);
    const bool is_late = late.rank >= 0 && step >= late.step;
    const bool is_lone = hang.is("lone") && step == hang.step;
    const bool hangs = hang.rank >= 0 && step == hang.step && !is_lone;
    if (hangs && own == hang.rank && hang.is("skip")) compute_for_ever();
    Oddities odd{.gpu_ns = 2 * kMs, .never_ends = hangs};
    if (is_late && own != late.rank) odd.gpu_ns += kLateMs * kMs;
    // By sockets, a send to who is not there waits for the network; others have nothing to send.
    if (is_late && own != late.rank)
      (next == late.rank ? odd.network_wait_us : odd.gpu_wait_us) = kLateUs;
    if (is_late && own == late.rank && late.is("host")) sleep_ms(kLateMs);
    if (is_late && own == late.rank && late.is("gpu")) odd.queued_ns = kLateMs * kMs;
    Call reduce;
    const Call gather{.function = "AllGather"};
    slow_down(network, step, own, &odd);
    const bool is_at_fault = hangs && own == hang.rank;
    if (is_at_fault && hang.is("other")) reduce = gather;
    if (is_at_fault && hang.is("bytes")) reduce.count /= 2;
    if (is_at_fault && hang.is("order")) world.launch(gather, odd);
    world.launch(reduce, odd);
    if (hangs && !is_at_fault && hang.is("order")) world.launch(gather, odd);
    if (hangs) {
      proxy->wait();
      const int patience_ms = number_from("FAKE_NCCL_WATCHDOG", 0);
      if (patience_ms == 0) wait_for_the_gpu_for_ever();
      sleep_ms(static_cast<uint64_t>(patience_ms));
      world.finalize();
      std::abort();
    }
    if (is_lone && own == hang.rank) compute_for_ever();
    const uint64_t to_ns = own == link.rank ? 20 * kMs : kMs;
    const uint64_t from_ns = previous == link.rank ? 20 * kMs : kMs;
    world.launch(std::vector<Call>{
        {.function = "Send", .count = 1 << 21, .root = next, .gpu_ns = to_ns},
        {.function = "Recv", .count = 1 << 21, .root = previous, .gpu_ns = from_ns}});
    proxy->wait();
    if (is_lone) wait_for_the_gpu_for_ever();
    aon_step_end();
  }
  world.finalize();
}

}  // namespace aon::test::nccl
