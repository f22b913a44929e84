/// State of the runtime in one process, and what its parts offer each other. Internal.
///
/// Everything that must not survive a fork lies in one mapping with MADV_WIPEONFORK: after any kind
/// of fork the child reads zeros, which mean "not attached" everywhere (state kNone, locks open,
/// writers without a ring). Only the address of the mapping and the pthread key are inherited.
///
///     kNone --first event (CAS)--> kBusy --ring mapped--> kReady
///                                    \--no agent, no file--> kOff      (both for ever)
///
/// Thread: any; `state` publishes the fields above it (tag runtime:state).
/// Owner: nobody frees it.
#pragma once

#include <aon/bell.h>
#include <aon/process_mutex.h>
#include <aon/ring.h>
#include <aon/writer.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "core/runtime/counters.h"
#include "core/runtime/pause.h"
#include "core/runtime/timer_samples.h"

namespace aon::runtime {

enum class AttachState : uint32_t { kNone = 0, kBusy = 1, kReady = 2, kOff = 3 };

constexpr uint32_t kInternCapacity = 8192;  ///< names; a power of two
constexpr uint32_t kInternTextBytes = 1u << 20;

/// For definitions that met a full pool and wait for the next one.
constexpr uint32_t kDeferredBytes = 64u << 10;

struct InternEntry {
  uint64_t hash;
  uint32_t id;  ///< 0: free
  uint32_t text_offset;
};

struct Process {
  // Written by the thread that attaches, constant once `state` is kReady.
  RingHeader* ring;
  RingGeometry geometry;
  std::atomic<uint32_t>* modes;
  ThreadSlot* slots;
  std::atomic<uint64_t>* free_map;
  char* chunks;
  Bell* bell;  ///< null: there is none
  int socket;
  bool has_agent;
  int asked_socket;           ///< Hello is sent, Welcome not yet here; 0: none
  bool is_left_alone;         ///< the agent does not want this program
  NoAgent no_agent;           ///< told in the file that is made in its stead
  char path[PATH_MAX];        ///< put together here: stacks are small
  char guest_path[PATH_MAX];  ///< the same for the first guest

  // Shared.
  std::atomic<uint32_t> state;             ///< AttachState
  std::atomic<uint32_t> attaching_thread;  ///< tid while `state` is kBusy
  std::atomic<uint32_t> attach_is_slow;    ///< nobody waits for it any more
  std::atomic<uint64_t> early_refused;     ///< events that met the attach under way
  std::atomic<uint32_t> has_refused;       ///< 1: an event of a thread without a writer
  std::atomic<uint32_t> owner;        ///< pid of the process whose memory this is; 0: not known
  std::atomic<uint32_t> has_guests;   ///< 1: the node knows
  std::atomic<uint32_t> guests_told;  ///< 1: the ledger knows
  std::atomic<uint32_t> clock_pair_busy;
  std::atomic<uint32_t> slots_ran_out;    ///< 1: the ledger knows
  std::atomic<uint32_t> annotators_told;  ///< bits: who annotates is defined as a provider
  uint8_t defined[kMaxAnnotations];       ///< by Annotation::index; atomic, single bytes
  PauseLog pauses;
  ProcessMutex pause_lock;  ///< of changes: halves of two would stay, in the sites and in the log
  Writer off_writer;        ///< of all threads while nothing is recorded here; a child may record

  ProcessMutex definition_lock;
  uint32_t intern_count AON_GUARDED_BY(definition_lock);
  uint32_t intern_text_used AON_GUARDED_BY(definition_lock);
  bool intern_overflowed AON_GUARDED_BY(definition_lock);
  InternEntry intern[kInternCapacity] AON_GUARDED_BY(definition_lock);
  char intern_text[kInternTextBytes] AON_GUARDED_BY(definition_lock);
  uint32_t deferred_bytes AON_GUARDED_BY(definition_lock);
  char deferred[kDeferredBytes] AON_GUARDED_BY(definition_lock);

  CounterPlan counter_plan;
  TimerPlan timer_plan;

  // Entry i belongs to thread slot i: to the thread that holds the slot. A record touches as few
  // cache lines as it can.
  alignas(64) Writer writers[kMaxThreadSlots];
  ThreadCounters thread_counters[kMaxThreadSlots];
  ThreadTimer timers[kMaxThreadSlots];
};

/// The process's state, or null before the first attach.
Process* process();

ChunkHeader* chunk_at(Process& p, uint32_t index);
uint32_t chunk_index(Process& p, const ChunkHeader* chunk);

/// Takes the lowest free chunk, or kNoChunk. Lowest first keeps the pool small and its pages warm.
/// Thread: any.   Signal: safe.
uint32_t take_chunk(Process& p);

/// Wakes the agent if it sleeps.
/// Thread: any.   Signal: safe.   Cost: a system call, at most once in a sleep of the agent.
void ring_bell(Process& p);

/// Brings a context that was left by longjmp back to what the reader sees.
void repair_context(Process& p, Writer* w, uint32_t depth);

/// Gives the calling thread a slot and its writer. Null: no slot is free (counted). Signals are
/// blocked.
Writer* attach_thread(Process& p);
/// Counts an event of a thread for which there was no slot. False: it may look for one (again).
/// Signal: safe.   Cost: one shared add.
bool refuse_without_slot();

/// Counts the end of a region of a thread without a writer, unless none of its events was refused.
/// Signal: safe.   Cost: three shared adds.
void refuse_end();

/// aon_define() for an attached process, also by a thread without a slot.
bool define(Process& p, uint32_t type, const void* payload, uint32_t payload_bytes,
            const char* text, uint32_t text_bytes);

/// Sets the thread's end as pthread key destructor; once per process and its children.
bool prepare_thread_exit();

/// Ring of a process without an agent: a file of its own in the job directory. False: none.
bool open_fallback_ring(Process& p);
/// Leaves a note in the job directory that this process stays without a ring, unless it is not to
/// be recorded (AON_DISABLE). Overwrites `path`.
void count_unrecorded(char (&path)[PATH_MAX]);

/// Ring from the agent behind `socket_path`. False: no answer in `timeout_ms`. If there is a `call`
/// that begins, the agent learns of it, the connection is kept, and the next try goes on with it.
bool open_agent_ring(Process& p, const char* socket_path, int timeout_ms, const Site* call);

/// Lays `p` over a mapped ring of this geometry.
void use_ring(Process& p, void* mapping, const RingGeometry& geometry);

/// Updates clock_last of a ring without an agent.
void note_clock(Process& p);
ClockPair read_clock_pair(bool clock_is_tsc);

/// True when the TSC ticks at one rate in every state and on every core of this machine.
bool tsc_is_constant();

/// What a process says of itself at its first event.
ProcessIdentity process_identity();

/// Blocks all signals of the calling thread while it lives, a handler cannot see half a slot; and
/// its cancellation, for which a system call would be the place. By sigprocmask(), which on Linux
/// is for the calling thread alone: pthread_sigmask() was in libpthread (aon/old_libc.h).
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSYS);  // of a seccomp filter that traps: while blocked it kills
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    sigprocmask(SIG_SETMASK, &all, &saved_);
  }
  ~SignalBlock() {
    sigprocmask(SIG_SETMASK, &saved_, nullptr);
    pthread_setcancelstate(cancel_state_, nullptr);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  int cancel_state_;
  sigset_t saved_;
};

}  // namespace aon::runtime
