/// The rings of all processes of the node -> staging. Owns the mapped rings and the readers.
///
/// Growth: each ring offers its writers more chunks before the free part falls under what
/// kDrainGapNs at its highest rate so far needs, within the limits of a process and of the node.
/// Exactly once: see reader.h; an entry of staging carries the position that follows it, and
/// restore() applies the last one if its worker was killed before it did.
/// Thread: the drain thread; modes are also written by the housekeeping thread (ModeTable).
/// Cost: one memcpy per record; a pass over idle rings is a few loads per used slot.
#pragma once

#include <aon/mutex.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/inbox.h"
#include "core/agent/protocol.h"
#include "core/agent/stack_table.h"
#include "core/agent/staging.h"
#include "core/agent/state.h"
#include "core/agent/stuck.h"
#include "core/ring/memory.h"
#include "core/ring/reader.h"

namespace aon::agent {

constexpr uint64_t kDrainGapNs = 150'000'000;
constexpr uint32_t kFirstChunks = 64;  ///< 256 KiB, offered at attach
constexpr uint32_t kRingSlots = 512;   ///< threads at one time, and slot 0

/// The mode words of live rings, for the budget.
class ModeTable {
 public:
  void add(uint32_t process, std::atomic<uint32_t>* modes);
  void remove(uint32_t process);
  /// Calls `visit(process, modes)` for each, under the lock.
  template <class Visit>
  void for_each(Visit visit) {
    const MutexLock lock(&m_);
    for (const auto& [process, modes] : table_) visit(process, modes);
  }

 private:
  Mutex m_;
  std::map<uint32_t, std::atomic<uint32_t>*> table_ AON_GUARDED_BY(m_);
};

struct DrainSettings {
  uint64_t ring_bytes;  ///< of one process
  uint64_t node_bytes;  ///< of all rings
  bool clock_is_tsc;
  uint64_t hang_ns = 0;  ///< a call that is open for longer is told; 0: none
};

struct DrainPass {
  uint64_t bytes = 0;
  bool is_complete = true;  ///< false: staging is full
  bool left_init = false;   ///< of a process that was in MPI_Init
  bool has_rings = false;   ///< some process records
  int period_ms = 20;       ///< when the next pass should come
};

class Drainer : private ring::Sink {
 public:
  Drainer(const DrainSettings& settings, State* state, const Staging* staging,
          const std::atomic<uint64_t>* tail, Inbox* inbox, ModeTable* modes);

  /// Rings are told to `stacks`, too, which outlives this.
  void share_stacks(StackTable* stacks) { stacks_ = stacks; }
  /// Is asked for the stacks of threads that seem to hang; outlives this.
  void use_stuck(StuckThreads* stuck) { stuck_ = stuck; }
  /// Repairs positions after a killed worker. Before the first add.
  void restore();

  /// Makes the ring of a new process. Returns its descriptor, owned by the drainer.
  /// Errors: kUnavailable when the node's memory is used up; kIo.
  Result<int> create(uint32_t cell);
  RingGeometry geometry(uint32_t cell) const { return rings_.at(cell).memory->geometry(); }
  /// Descriptor of the ring of a live process.
  int ring_fd(uint32_t cell) const { return rings_.at(cell).memory->fd(); }
  /// Until the process has mapped its ring, it is in this call, which the spool learns of, too.
  void show_call(uint32_t cell, const BegunCall& call);
  /// The process will not map its ring: it went on with a file of its own.
  void withdraw_call(uint32_t cell);
  /// Maps the ring of a process that an earlier worker accepted.   Errors: kIo.
  Status attach(uint32_t cell, UniqueFd ring);

  /// Takes what is committed in all rings, then lets rings grow.
  DrainPass drain(uint64_t now_ns);
  /// Takes everything of one process that has ended. False: staging is full, call again.
  bool drain_to_end(uint32_t cell, uint64_t end_ticks);
  /// Counts what is left of it as refused: there was no room for too long.
  void give_up(uint32_t cell, uint64_t end_ticks);
  /// Of its threads, so far as they have slots; untrusted.
  std::vector<int32_t> thread_ids(uint32_t cell) const;
  /// What the process noted about its crash (aon/crash.h); untrusted.
  uint32_t crash_place(uint32_t cell) const;
  /// Whether calls of it were counted: they are sent again by a new worker as long as the ring is
  /// there.
  bool has_counts(uint32_t cell) const;
  /// Unmaps the ring of a process.
  void remove(uint32_t cell);

  /// Sends counted calls that changed since the last time.
  void report_counts();
  /// Sends calls that have been open for hang_ns, each once, and asks for their stacks and for
  /// those of processes that have recorded nothing for as long.
  void report_open_calls(uint64_t now_ns);

  /// True when the encode thread should not wait for its next flush: as much has come since this
  /// was true as stays in the cache, or staging fills up.
  bool wants_encoding() noexcept;
  /// Most memory that the rings had at one time.
  uint64_t peak_ring_bytes() const noexcept {
    return peak_node_bytes_.load(std::memory_order_relaxed);
  }
  bool is_empty() const noexcept { return rings_.empty(); }

 private:
  struct OpenSince {
    ring::OpenCall call{};  ///< as first seen
    uint64_t seen_ns = 0;   ///< awake_ns()
    bool is_told = false;
  };
  struct Ring {
    uint32_t cell;
    uint32_t process;
    std::unique_ptr<ring::RingMemory> memory;
    std::unique_ptr<ring::RingReader> reader;
    std::vector<uint32_t> streams;  ///< StreamCell by slot and context, kNoCell
    std::map<uint32_t, std::array<uint64_t, kMaxCounters>> counts;  ///< by slot, as last sent
    std::map<uint32_t, OpenSince> open_since;                       ///< by slot
    std::map<uint32_t, uint64_t> dropped;  ///< records for which there was no place, by stream
    uint64_t bytes_in_window = 0;
    uint64_t window_start_ns = 0;
    uint64_t peak_bytes_per_s = 0;
    uint64_t first_drain_ns = 0;
    std::optional<uint32_t> init_region;  ///< of MPI_Init, where it attached there
    uint64_t last_record_ns = 0;          ///< awake_ns() when the last drain brought something
    uint64_t last_record_ticks = 0;       ///< the same
    bool is_quiet = false;                ///< and that was told
    bool has_recorded = false;  ///< more than definitions, which idle threads of ours make
    bool has_counts = false;
  };

  bool take(const ring::Piece& piece) override;
  void moved(uint32_t slot, uint32_t context, const ring::StreamPosition& position) override;

  uint32_t stream_cell(uint32_t slot, uint32_t context);
  uint64_t staging_tail() const noexcept;
  void rewind_staging() noexcept;
  bool append(uint32_t stream, std::span<const uint8_t> bytes, uint32_t counted,
              const ring::StreamPosition* position);
  Ring ring_of(uint32_t cell, ring::RingMemory memory) const;
  void restore_streams(Ring* ring) const;
  void adopt(Ring ring);
  void add_node_bytes(uint64_t bytes) noexcept;
  void drop(uint32_t slot, uint32_t context, uint64_t count);
  uint64_t reserved_bytes() const noexcept;
  uint32_t first_growth(const Ring& ring, uint64_t now_ns) const noexcept;
  void grow(Ring& ring, uint64_t now_ns, uint64_t bytes);
  static int period_ms(const Ring& ring, bool is_calm);
  void read_refused(Ring& ring);
  void report_counts(Ring& ring);
  void report_open_calls(Ring& ring, uint64_t now_ns);
  static bool is_told_by_us(std::span<const uint8_t> records);
  void report_quiet(Ring& ring, uint64_t now_ns);
  bool has_left_init(const Ring& ring) const;
  void note_records(Ring* ring, uint64_t now_ns) const;
  void note_pass(uint64_t now_ns) noexcept;
  uint64_t awake_ns(uint64_t now_ns) const noexcept { return now_ns - stopped_ns_; }
  void ask_stack(const Ring& ring, int32_t tid, uint64_t quiet_ticks);
  static bool is_in_call(const Ring& ring, int32_t tid);
  bool write_open_calls(Ring& ring, uint64_t end_ticks);

  DrainSettings settings_;
  State* state_;
  const Staging* staging_;
  const std::atomic<uint64_t>* tail_;
  Inbox* inbox_;
  ModeTable* modes_;
  StackTable* stacks_ = nullptr;
  StuckThreads* stuck_ = nullptr;
  std::map<uint32_t, Ring> rings_;  ///< by cell
  Ring* current_ = nullptr;         ///< whose pieces take() gets
  bool is_giving_up_ = false;       ///< take() only counts
  uint64_t encoding_from_ = 0;      ///< head of staging when wants_encoding() was true last
  uint32_t advance_chunks_ = 0;     ///< that this pass may still offer before they are needed
  uint64_t last_pass_ns_ = 0;
  uint64_t stopped_ns_ = 0;  ///< how long this process did not run
  std::atomic<uint64_t> node_bytes_{0};
  std::atomic<uint64_t> peak_node_bytes_{0};
};

}  // namespace aon::agent
