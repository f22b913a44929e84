/// What a worker leaves to the next one: the state memfd. The keeper makes it and holds it; only
/// the worker maps it. Everything a restarted worker needs to take up the work exactly where the
/// dead one was killed stands here, in the staging memfd, in the rings and in the spool.
///
///     StateHeader | ProcessCell[processes] | StreamCell[streams] | FileCell[files]
///                 | MetricCell[metrics] | SampleCell[samples] | MetricCell[metrics]
///
/// The file is sparse: a cell that was never used costs nothing. How many there are of each stands
/// in the header: kMaxProcesses and so on, less where the limit on file sizes is small.
///
/// Two actors, two kinds of progress:
///   drain thread   copies records of a ring into a staging entry, publishes the entry (staging
///                  head), then stores the stream's position; the entry carries the position that
///                  follows it, so a kill between the two is repaired from the last entry.
///   encode thread  writes blocks, then publishes one commit: every value it owns is Versioned, so
///                  the staging tail, the file offsets and the counts change together or not.
/// Memory outlives SIGKILL, so program order is all that counts; nothing is synced.
/// Thread: see each field.   Cost: about 1 MiB for 64 ranks.
#pragma once

#include <aon/definition.h>
#include <aon/record.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/agent/kept_notes.h"
#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/ring/reader.h"
#include "core/spool/format.h"

namespace aon::agent {

constexpr uint64_t kStateMagic = 0x315453'4e4f41ull;  ///< "AONST1"
constexpr uint32_t kMaxProcesses = 16384;             ///< of one launch on one node
constexpr uint32_t kMaxStreams = 131072;
constexpr uint32_t kMaxFiles = 32768;
constexpr uint32_t kMaxRegistered = 4096;
constexpr uint32_t kMaxSamples = 65536;  ///< between two commits
constexpr uint32_t kMaxMetrics = 65536;  ///< at one time
constexpr uint32_t kMostHalvings = 5;    ///< of all these but kMaxRegistered
constexpr uint32_t kNoCell = 0xffffffffu;
constexpr uint32_t kAgentStreams = 2;  ///< of a process: its series and its call samples

/// A value that changes with commits: the version of the last commit stays intact while the next
/// one is written.
template <class T>
class Versioned {
 public:
  /// The value as of commit `commit`; zero bytes when it was never written by then.
  const T& at(uint64_t commit) const noexcept { return side_[newer(commit)].value; }

  /// Stores `value` as part of the commit that follows `commit`.
  void set(uint64_t commit, const T& value) noexcept {
    Side& side = side_[1u - newer(commit)];
    side.commit.exchange(0, std::memory_order_acq_rel);  // pairs with agent:version
    side.value = value;
    // A kill may come between any two of these.
    side.commit.store(commit + 1, std::memory_order_release);  // pairs with agent:version
  }

  /// Forgets what a killed worker prepared for a commit that never came; else a later commit of the
  /// same number would make it valid.
  void discard_after(uint64_t commit) noexcept {
    for (Side& side : side_) {
      if (side.commit.load(std::memory_order_relaxed) > commit)
        side.commit.store(0, std::memory_order_relaxed);
    }
  }

 private:
  struct Side {
    std::atomic<uint64_t> commit;  ///< that made it valid; 0 never
    T value;
  };
  /// The side with the largest commit number that is not above `commit`.
  uint32_t newer(uint64_t commit) const noexcept {
    const uint64_t first = valid_commit(side_[0], commit);
    return valid_commit(side_[1], commit) > first ? 1u : 0u;
  }
  static uint64_t valid_commit(const Side& side, uint64_t commit) noexcept {
    const uint64_t made_by =
        side.commit.load(std::memory_order_acquire);  // pairs with agent:version
    return made_by <= commit ? made_by : 0;
  }
  Side side_[2];
};

/// Where the encode thread is.
struct Progress {
  uint64_t staging_tail;
  uint64_t definitions_bytes;  ///< valid length of definitions.aon
  uint64_t definitions_inode;
  uint64_t definitions_block_sequence;
  uint64_t sample_tail;
  uint32_t node_written;  ///< 1: kNode and topology are in the file
  uint32_t evicting;      ///< 1: `evicted` must be unlinked, its losses are written
  uint32_t evicted_process;
  uint32_t evicted_slot;  ///< kSharedFile: the process's own file
  uint32_t evicted_segment;
  uint32_t reserved;
};

/// Records in a row that could not be written.
struct FailedRange {
  uint64_t first_sequence;
  uint64_t count;
  uint64_t first_ticks;
  uint64_t last_ticks;
};
/// Holes between two successful writes of definitions; more run together in the last one.
constexpr uint32_t kMaxFailedRanges = 8;

/// Counts and ticks of one stream, as StreamDefinition wants them, and what could not be written.
struct StreamProgress {
  uint64_t committed;
  uint64_t refused;
  uint64_t stream_cut;  ///< records that did not validate
  uint64_t ring_cut;    ///< records behind a chunk that did not validate
  uint64_t first_refused_ticks;
  uint64_t last_refused_ticks;
  FailedRange failed[kMaxFailedRanges];  ///< write failed, not yet in the definitions
  uint64_t failed_range_count;
  uint64_t open_count;  ///< open regions; the stack is read back from the last block
  uint64_t file_bytes;  ///< compressed, for the share of a chatty thread
  int32_t tid;
  uint32_t thread_count;
};

constexpr uint32_t kSharedFile = 0xffffffffu;

/// A segment file that is open for writing.
struct FileProgress {
  uint64_t bytes;
  uint64_t block_sequence;
  uint32_t segment;
  uint32_t in_use;
};

enum class ProcessPhase : uint32_t {
  kUnused = 0,
  kAttached = 1,
  kEnded = 2,     ///< its end was seen; the ring is being drained to the end
  kDrained = 3,   ///< nothing more will come; `exit_*` are final
  kFinished = 4,  ///< kProcessExit is in the spool
};

/// A definition of which some fragments are behind the staging tail already.
struct PartialDefinition {
  uint32_t type;
  uint32_t total_bytes;
  uint32_t byte_count;
  uint32_t reserved;
  uint8_t bytes[kMaxDefinitionBytes];
};

/// Samples that found no room. The housekeeping thread writes it.
struct RefusedSamples {
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> first_ticks;
  std::atomic<uint64_t> last_ticks;
};

/// The path of a program, as aon-run told it and then as the program itself does: who reads the one
/// meanwhile reads it whole.
class ProgramCell {
 public:
  static constexpr size_t kPathBytes = 256;
  const char* get() const noexcept { return path_[number() & 1u]; }
  /// How often it was set.
  uint32_t number() const noexcept {
    return number_.load(std::memory_order_acquire);  // pairs with agent:program
  }
  /// Once at most where a reader may look. `path` has kPathBytes and need not end with a NUL.
  void set(const char* path) noexcept {
    const uint32_t next = number_.load(std::memory_order_relaxed) + 1;
    std::memcpy(path_[next & 1u], path, kPathBytes - 1);
    number_.store(next, std::memory_order_release);  // pairs with agent:program
  }

 private:
  std::atomic<uint32_t> number_;
  char path_[2][kPathBytes];  ///< the last byte of each stays 0
};

/// Who has not said Hello, and why there is a process all the same.
enum class Followed : uint32_t {
  kNot = 0,         ///< it has said Hello
  kRegistered = 1,  ///< aon-run has started it
  kBelow = 2,       ///< what aon-run started has started it (programs_below.h)
};

/// One process. The drain thread writes it; `phase` is stored last.
struct ProcessCell {
  std::atomic<uint32_t> phase;
  uint32_t process;
  int32_t pid;
  std::atomic<int32_t> rank;         ///< these two change where it says Hello late
  std::atomic<uint32_t> world_size;  ///< 0 unknown
  int32_t exit_code;
  int32_t exit_signal;
  uint32_t ring_chunks;
  uint32_t crash_place;   ///< aon/crash.h; as the process says
  uint32_t is_cut_off;    ///< 1: it ran on when the agent was told to end
  uint32_t is_elsewhere;  ///< 1: of a PID namespace that is not seen here; `pid` is a number there
  uint64_t start_time_ticks;
  uint64_t attach_ticks;
  uint64_t end_ticks;
  uint64_t memory_bytes;                ///< largest committed size of the ring
  std::atomic<uint32_t> is_followed;    ///< drain thread: Followed
  std::atomic<uint32_t> is_in_init;     ///< drain thread; 1: since it attached, in MPI_Init
  std::atomic<uint32_t> has_told_mpi;   ///< encode thread; 1: it has said a word on MPI
  std::atomic<uint64_t> cpu_time_ns;    ///< housekeeping thread
  std::atomic<uint64_t> counted_calls;  ///< drain thread: of all sites that count their calls
  RefusedSamples refused_samples[kAgentStreams];
  ProgramCell program;
  Versioned<uint32_t> written;           ///< encode thread: ProcessPhase that the spool tells
  Versioned<uint32_t> written_program;   ///< encode thread: number of the path that it tells
  Versioned<PartialDefinition> partial;  ///< encode thread

  /// What the kernel calls it here; 0: it has no number here.
  int32_t pid_here() const noexcept { return is_elsewhere != 0 ? 0 : pid; }
};

/// Position of a stream in its ring, replaced as a whole.
class PositionCell {
 public:
  ring::StreamPosition get() const noexcept {
    return side_[current_.load(std::memory_order_acquire) & 1u];  // pairs with agent:position
  }
  void set(const ring::StreamPosition& position) noexcept {
    const uint32_t next = 1u - (current_.load(std::memory_order_relaxed) & 1u);
    side_[next] = position;
    current_.store(next, std::memory_order_release);  // pairs with agent:position
  }

 private:
  std::atomic<uint32_t> current_;
  [[maybe_unused]] uint32_t reserved_;
  ring::StreamPosition side_[2];
};

struct StreamCell {
  std::atomic<uint32_t> in_use;  ///< stored last
  uint32_t process;
  uint16_t slot;
  uint16_t context;
  std::atomic<uint64_t> refused;       ///< drain thread: as last read from the ring
  std::atomic<uint64_t> cut_count;     ///< drain thread: records behind a cut, see reader.h
  uint32_t open_calls_written;         ///< drain thread: 1 when staging has them
  PositionCell position;               ///< drain thread, see reader.h
  Versioned<StreamProgress> progress;  ///< encode thread
};

struct FileCell {
  uint32_t process;
  uint32_t slot;           ///< kSharedFile: all streams without a file of their own
  uint32_t first_segment;  ///< those before it were left by an earlier agent
  uint32_t reserved;
  Versioned<FileProgress> progress;
};

/// Where an accumulated metric stands. Housekeeping thread, see series.h; of those where an earlier
/// agent left the node's, the encode thread.
struct MetricCell {
  uint32_t in_use;
  uint32_t process;
  uint32_t metric;
  uint32_t reserved;
  double value;
  uint64_t enabled_ns;
  uint64_t running_ns;
};

/// A record of a node provider, of one or two slots, whose it is and to which stream it goes.
struct SampleCell {
  uint32_t process;
  uint16_t slot;  ///< one of the agent's
  uint16_t reserved;
  RecordHead head;
  uint64_t words[4];
};

/// What earlier agents of this launch left of the node's own; this one's comes on top. Encode
/// thread, before its first commit.
struct EarlierAgents {
  UsageDefinition usage;
  uint64_t refused[kAgentStreams];  ///< samples
  uint32_t metric_count;            ///< State::earlier_metric()
};

struct RegisteredPid {
  int32_t pid;
  uint32_t is_gone;
  uint32_t is_elsewhere;     ///< as in ProcessCell
  uint32_t may_be_followed;  ///< 1: when it computes and has not said Hello (busy_programs.h)
  uint32_t is_below;         ///< 1: nobody has registered it (programs_below.h)
  int32_t rank;              ///< -1 none
  uint32_t world_size;
  uint64_t start_time_ticks;  ///< 0 unknown
  char program[256];          ///< that the pid became
};

/// How many cells there are of each kind; powers of two.
struct StateSizes {
  uint32_t processes;
  uint32_t streams;
  uint32_t files;
  uint32_t metrics;
  uint32_t samples;
};

struct StateHeader {
  uint64_t magic;
  StateSizes sizes;                               ///< as the memfd was made
  std::atomic<uint64_t> commit;                   ///< encode thread: the last whole commit
  std::atomic<uint64_t> staging_head;             ///< drain thread
  std::atomic<uint64_t> staging_base;             ///< drain thread: entries begin here (staging.h)
  std::atomic<uint64_t> sample_head;              ///< housekeeping thread
  std::atomic<uint64_t> sample_tail;              ///< encode thread, after its commit
  std::atomic<uint64_t> sample_base;              ///< housekeeping thread: its cell is the first
  RefusedSamples refused_samples[kAgentStreams];  ///< the node's own
  uint32_t metric_count;            ///< housekeeping thread: cells that were ever used
  std::atomic<uint32_t> has_lease;  ///< keeper: the folder is ours alone
  uint32_t first_process;           ///< number of ProcessCell 0
  std::atomic<uint32_t> process_count;
  std::atomic<uint32_t> stream_count;
  std::atomic<uint32_t> file_count;
  std::atomic<uint32_t> registered_count;
  std::atomic<uint32_t> expected_ranks;
  std::atomic<uint32_t> world_size;       ///< drain thread: the largest that was told (span.h)
  std::atomic<uint32_t> spans_nodes;      ///< drain thread, at the end the keeper; 1: it has ranks
                                          ///< elsewhere
  std::atomic<uint64_t> world_told_ns;    ///< drain thread: CLOCK_MONOTONIC when world_size grew
  std::atomic<uint32_t> world_that_came;  ///< as spans_nodes: the largest that is here as a whole
  std::atomic<uint32_t> connection_count;
  /// Worker: CLOCK_MONOTONIC of its last turn; 0 where it makes none (start and end).
  std::atomic<uint64_t> worker_turn_ns;
  std::atomic<uint64_t> worker_turn_ticks;  ///< the same of the last worker that made one
  std::atomic<uint64_t> keeper_cpu_ns;      ///< CPU time of the keeper and its Transfer, all told
  std::atomic<uint32_t> worker_done;        ///< worker: its exit code and 1, when all is written
  uint32_t worker_count;                    ///< workers started so far
  uint64_t application_cost_ns;             ///< housekeeping thread
  uint64_t dead_workers_cpu_ns;             ///< keeper
  EarlierAgents earlier;
  KeptNotes notes;
  RegisteredPid registered[kMaxRegistered];
  Versioned<Progress> progress;
};

constexpr uint64_t kStartNs = 500'000'000;  ///< work that can wait waits at most so long

/// Ranks of this node that aon-run announced have not attached yet. They need the cores: work that
/// nobody waits for is put off, for kStartNs at most. Those of one MPI program leave MPI_Init when
/// all have come; others never come (they record nothing), or record much meanwhile.
inline bool ranks_are_coming(const StateHeader& header) noexcept {
  return header.expected_ranks.load(std::memory_order_relaxed) >
         header.process_count.load(std::memory_order_relaxed);
}

/// The mapped state. Lives as long as the worker.
class State {
 public:
  /// The memfd, all zero but for the sizes. Of `most_bytes` at most, as far as kMostHalvings go.
  /// Errors: kIo.
  static Result<UniqueFd> create(uint64_t most_bytes = ~uint64_t{0});
  /// Maps it.   Errors: kIo.
  static Result<State> map(int fd);

  StateHeader& header() const noexcept { return *header_; }
  const StateSizes& sizes() const noexcept { return header_->sizes; }
  ProcessCell& process(uint32_t index) const noexcept { return processes_[index]; }
  StreamCell& stream(uint32_t index) const noexcept { return streams_[index]; }
  FileCell& file(uint32_t index) const noexcept { return files_[index]; }
  MetricCell& metric(uint32_t index) const noexcept { return metrics_[index]; }
  /// One between tail and head.
  SampleCell& sample(uint64_t number) const noexcept {
    const uint64_t base = header_->sample_base.load(std::memory_order_relaxed);
    return samples_[(number - base) & (sizes().samples - 1)];
  }
  MetricCell& earlier_metric(uint32_t index) const noexcept { return earlier_metrics_[index]; }
  /// Of a process, or of the node for any other number. `slot` is one of the agent's.
  RefusedSamples& refused_samples(uint32_t process, uint16_t slot) const noexcept {
    const uint32_t index = process - header_->first_process;
    RefusedSamples* all =
        index < sizes().processes ? processes_[index].refused_samples : header_->refused_samples;
    return all[agent_stream(slot)];
  }
  /// Samples of the same stream that earlier agents had no room for: of the node alone.
  uint64_t earlier_refused(uint32_t process, uint16_t slot) const noexcept {
    return process == spool::kNodeProcess ? header_->earlier.refused[agent_stream(slot)] : 0;
  }
  uint64_t commit() const noexcept {
    return header_->commit.load(std::memory_order_acquire);  // pairs with agent:commit
  }
  /// The cell of a stream; made if there is none. kNoCell: there is no room. Thread: any, but only
  /// one for the same stream.   Cost: proportional to the streams; callers keep the number.
  uint32_t add_stream(uint32_t process, uint16_t slot, uint16_t context) const noexcept;
  uint32_t find_or_add_stream(uint32_t process, uint16_t slot, uint16_t context) const noexcept;
  /// A new worker calls it before its first commit.
  void discard_uncommitted() const noexcept;
  /// CPU time of all processes. One that calls exec() has a cell for each of its programs, and the
  /// kernel goes on counting: it is in the sum once.   Thread: any.   Cost: allocates.
  uint64_t sum_cpu_time_ns() const;

 private:
  static uint32_t agent_stream(uint16_t slot) noexcept {
    return slot == spool::kSeriesSlot ? 0 : 1;
  }

  StateHeader* header_ = nullptr;
  ProcessCell* processes_ = nullptr;
  StreamCell* streams_ = nullptr;
  FileCell* files_ = nullptr;
  MetricCell* metrics_ = nullptr;
  SampleCell* samples_ = nullptr;
  MetricCell* earlier_metrics_ = nullptr;
};

}  // namespace aon::agent
