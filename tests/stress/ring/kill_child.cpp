// A program to be killed: `kill_child CASE ORACLE`. In the step cases it stops itself where the
// single steps begin and where they end; `storm` runs until it is killed.
#include <aon/mpi_records.h>
#include <signal.h>
#include <sys/ptrace.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/ring/oracle.h"
#include "tests/unit/runtime/numbered.h"

namespace {

using aon::Writer;
using aon::test::Oracle;

constexpr aon::Site kSite = {9, "stepped", 0, 0, aon::kModeFull};
constexpr aon::Site kCounted = {10, "counted", 0, 0, aon::kModeCount};

constexpr uint64_t kMoreThanFits = 4000;  ///< into the chunks that the agent offers

Oracle* g_oracle;
uint64_t g_number = 0;

[[gnu::noinline]] void event() {
  Writer* w = aon::attached_writer();
  if (w == nullptr || !aon::test::put_numbered(w, 0, g_number)) {
    g_oracle->refused[0].fetch_add(1);
  }
  ++g_number;
  g_oracle->returned[0].store(g_number, std::memory_order_release);
}

[[gnu::noinline]] void call(const aon::Site& site) {
  const uint32_t plan = aon::plan_call(site);
  Writer* w = aon::writer();
  const uint32_t weight = plan == aon::kForward ? aon::kForward : aon::start_plan(w, site, plan);
  if (weight != aon::kForward) {
    aon::OpenCall open = aon::begin_call(w, site.id, 1, 2, 3);
    finish_message(open, aon::kOutgoing, 1, 3, 2, 4);
  }
  ++g_number;
  g_oracle->returned[0].store(g_number, std::memory_order_release);
}

/// A call within a call, as a callback of MPI makes it.
[[gnu::noinline]] void call_inside() {
  Writer* w = aon::writer();
  aon::OpenCall outer = aon::begin_call(w, kSite.id, 1, 2, 3);
  aon::OpenCall inner = aon::begin_call(w, kSite.id, 1, 2, 3);
  finish_message(inner, aon::kOutgoing, 1, 3, 2, 4);
  finish_message(outer, aon::kOutgoing, 1, 3, 2, 4);
  ++g_number;
  g_oracle->returned[0].store(g_number, std::memory_order_release);
}

/// A call that took longer than 32 bits of ticks.
[[gnu::noinline]] void long_call() {
  Writer* w = aon::writer();
  aon::OpenCall open = aon::begin_call(w, kSite.id, 1, 2, 3);
  open.start_ticks -= uint64_t{1} << 33;
  w->slot->open[0].start_ticks.store(open.start_ticks, std::memory_order_release);
  finish_message(open, aon::kOutgoing, 1, 3, 2, 4);
  ++g_number;
  g_oracle->returned[0].store(g_number, std::memory_order_release);
}

/// A call that has completed a message: its end and the call's own record at once.
[[gnu::noinline]] void completing_call() {
  Writer* w = aon::writer();
  aon::OpenCall open = aon::begin_call(w, kSite.id);
  finish_completing(open, aon::ticks(w), {aon::kOutgoing, 1, 3, 2, 4}, 1);
  ++g_number;
  g_oracle->returned[0].store(g_number, std::memory_order_release);
}

/// A record while another one is filled, as a signal handler of the program writes it.
[[gnu::noinline]] void event_within() {
  const bool is_outer_put =
      aon::emit(aon::attached_writer(), 2, true, aon::ticks(aon::writer()), [](char* at) {
        event();
        auto* head = reinterpret_cast<aon::RecordHead*>(at);
        *head = {1, 1, aon::RecordKind::kMessage, 2, 0, kSite.id, 0, 0};
        memset(head + 1, 0, aon::kSlotBytes);
      });
  if (!is_outer_put) g_oracle->refused[0].fetch_add(1);
  g_oracle->returned[1].fetch_add(1);
}

/// One that may be refused; then its number is the next one's.
[[gnu::noinline]] void event_or_refused() {
  if (aon::test::put_numbered(aon::attached_writer(), 0, g_number)) ++g_number;
  g_oracle->returned[0].fetch_add(1);
}

void stop_for_steps() {
  ptrace(PTRACE_TRACEME, 0, 0, 0);
  raise(SIGSTOP);
}

void repeat(uint64_t count, void (*what)()) {
  for (uint64_t i = 0; i < count; ++i) what();
}

void storm() {
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (uint64_t number = 0;; ++number) {
        Writer* w = aon::attached_writer();
        if (w == nullptr || !aon::test::put_numbered(w, thread, number)) {
          g_oracle->refused[thread].fetch_add(1, std::memory_order_release);
        }
        g_oracle->returned[thread].store(number + 1, std::memory_order_release);
        if (number % 2000 == 1999) usleep(1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The case up to where the steps begin, then the part that is stepped.
bool run_steps(const std::string& name) {
  if (name == "event") {
    repeat(5, event);
    stop_for_steps();
    repeat(4, event);
  } else if (name == "chunk") {
    repeat(72, event);  // kThread and these fill a chunk but for a few slots
    stop_for_steps();
    repeat(6, event);
  } else if (name == "call") {
    repeat(3, [] { call(kSite); });
    stop_for_steps();
    repeat(3, [] { call(kSite); });
  } else if (name == "completing") {
    repeat(72, event);
    stop_for_steps();  // and over the end of the chunk
    repeat(6, completing_call);
  } else if (name == "count") {
    repeat(3, [] { call(kCounted); });
    stop_for_steps();
    repeat(3, [] { call(kCounted); });
  } else if (name == "inside") {
    repeat(3, call_inside);
    stop_for_steps();
    repeat(3, call_inside);
  } else if (name == "wide") {
    repeat(3, long_call);
    stop_for_steps();
    repeat(3, long_call);
  } else if (name == "nested") {
    repeat(5, event_within);
    stop_for_steps();
    repeat(4, event_within);
  } else if (name == "full") {
    repeat(kMoreThanFits, event_or_refused);
    stop_for_steps();
    repeat(4, event_or_refused);
  } else if (name == "lost") {
    repeat(kMoreThanFits, event_or_refused);
    stop_for_steps();  // the agent offers room again
    repeat(4, event_or_refused);
  } else if (name == "define") {
    event();
    stop_for_steps();
    aon::aon_intern_region(
        "a region with a name that needs more than one record to be told, "
        "because it is longer than ninety-six bytes",
        0, 0);
    event();
  } else if (name == "attach") {
    stop_for_steps();
    event();
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_oracle = aon::test::map_oracle(argv[2]);
  const std::string name = argv[1];
  if (name == "storm") storm();
  if (name != "attach" && aon::attached_writer() == nullptr) {
    g_oracle->refused[0].store(1);
    return 0;
  }
  if (!run_steps(name)) return 2;
  g_oracle->is_done.store(1);
  raise(SIGSTOP);
  return 0;
}
