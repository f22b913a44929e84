// An MPI program with hardware counters of its own making, for machines without a PMU: libaon.so
// finds aon_counter_source() in the program and asks it instead of the kernel.
//
//     counters_program rdpmc|off|refused|not_allowed|phases CALLS
//
// Register 0 counts "work" once, register 1 twice, ...; every reading adds 7: so does a call.
// `off`: in the second half of the calls the first counter is off the PMU.
#include <aon/annotate.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <thread>

#include "core/runtime/counters.h"

using aon::runtime::CounterSource;

namespace {

constexpr uint64_t kPerReading = 7;
constexpr uint64_t kWork = 1000;  // between two calls

const char* g_mode = "rdpmc";

struct Registers {
  perf_event_mmap_page page[aon::kMaxRegionCounters];
  uint64_t value[aon::kMaxRegionCounters];
  int opened;
  int mapped;
};
thread_local Registers t_registers;

int open_event(perf_event_attr*, int) {
  if (strcmp(g_mode, "refused") == 0) return -EACCES;
  return 100 + t_registers.opened++;
}

const perf_event_mmap_page* map_page(int) {
  const int index = t_registers.mapped++;
  perf_event_mmap_page& page = t_registers.page[index];
  page.cap_user_rdpmc = strcmp(g_mode, "not_allowed") != 0;
  page.index = static_cast<uint32_t>(index) + 1;
  page.pmc_width = 48;
  return &page;
}

void unmap_page(const perf_event_mmap_page*) { --t_registers.mapped; }
void close_event(int) {}

uint64_t read_register(uint32_t index) { return t_registers.value[index] += kPerReading; }

constexpr CounterSource kSource = {open_event, map_page, unmap_page, close_event, read_register};

void work() {
  for (uint64_t i = 0; i < aon::kMaxRegionCounters; ++i) t_registers.value[i] += kWork * (i + 1);
}

void make_calls(int count) {
  for (int i = 0; i < count; ++i) {
    const bool is_off = strcmp(g_mode, "off") == 0 && i >= count / 2;
    t_registers.page[0].index = is_off ? 0 : 1;
    work();
    MPI_Barrier(MPI_COMM_SELF);
  }
}

/// A phase of the program's own: work, a call, and a smaller phase with work of its own.
void make_phases(int count) {
  for (int i = 0; i < count; ++i) {
    AON_REGION_BEGIN("phase");
    work();
    MPI_Barrier(MPI_COMM_SELF);
    AON_REGION_BEGIN("part");
    work();
    AON_REGION_END("part");
    AON_REGION_END("phase");
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const CounterSource* aon_counter_source() {
  return &kSource;
}

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  g_mode = argv[1];
  const int count = atoi(argv[2]);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (strcmp(g_mode, "phases") == 0) {
    make_phases(count);
  } else {
    make_calls(count);
    std::thread(make_calls, count).join();
  }
  MPI_Finalize();
  printf("done %d\n", provided);
  return 0;
}
