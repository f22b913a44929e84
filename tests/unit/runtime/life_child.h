/// What the cases of life_child share.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstdint>

namespace life {

extern std::atomic<uint64_t> g_emitted;
extern thread_local uint32_t t_thread;  ///< whose numbers the calling thread's events bear

/// The next event of this thread. False: refused.
bool event();

// Cases of life_child_forks.cpp. Each prints the child's pid and exit code: 10, or 11 when its
// event was refused, or 12 when it takes its parent's pause for its own.
void run_fork();
void run_clone();
void run_vfork();
void run_first_in_vfork();
void run_first_in_shared_memory(int more_flags);
void run_first_of_a_thread_in_vfork();
void run_first_in_clone();
void run_clone_without_kcmp();
void run_first_in_clone_without_kcmp();
void run_fork_in_regions();
void run_fork_in_pause();
void run_fork_without_ring();
void run_generations();

// Cases of life_child_early.cpp.
void run_regions_that_meet_the_attach();
void run_regions_without_a_slot();
void run_threads_that_begin_with_the_first();

// Cases of life_child_limits.cpp.
void run_annotated_lock();
void run_cancelled_thread();
void run_pauses_at_once();
void run_beyond_a_chunk();
void run_without_keys();
void run_with_descriptors(rlim_t count, rlim_t first_taken);
void run_without_descriptors(rlim_t left);
void run_with_the_agents_descriptor_taken();
void run_without_memory();
void run_on_an_old_kernel();
void run_with_umask(void (*run)());
void run_with_trapped_calls();
void run_on_a_small_signal_stack();

}  // namespace life
