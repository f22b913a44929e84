/// Records of one location, in the order they were committed -> events in time order.
///
/// A span is committed when it ends, so the records made inside it arrive before it. They carry
/// kInsideSpan and are held back, as a forest, until the span comes that encloses them:
///
///     committed:  completion(inside)  completion(inside)  span Waitall      span Send
///     forest:     c                   c c                 Waitall[c c]      -
///     events:                                             Enter c c Leave   Enter Leave
///
/// Lost intervals and calls that were open at the end wait in the forest too, for their place is
/// only known with the next record. kBegin and kEnd go straight through a stack of open regions;
/// what the stack still holds at the end of a thread is closed and marked. A kLost says how many
/// regions have ended and begun in the hole: the first are closed where it begins, and marked; the
/// others stay in the stack, unseen, so that their ends are not taken for those of others.
///
/// Times never decrease: an earlier one is moved to the last one and counted.
/// Owner: the assembler.   Thread: one.   Cost: about 15 ns per event; at most kMaxPending records.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/clock/clock_map.h"
#include "core/spool/stream_reader.h"
#include "writers/assemble/border_counters.h"
#include "writers/assemble/open_io.h"
#include "writers/assemble/pending_transfers.h"
#include "writers/assemble/request_table.h"
#include "writers/ledger/tally.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr uint16_t kMaxNesting = 64;  ///< of held-back spans; deeper ones become siblings
/// Records held back; more are sent out as they are. A call may complete all requests that are
/// followed of a process (131 072), and one of MPI_Isendrecv has two ends.
constexpr size_t kMaxPending = (1u << 18) + kMaxNesting;
constexpr size_t kEventBatch = 2048;
/// Regions of a thread that are open at once: of a program that never ends some, too.
constexpr size_t kMaxOpen = 1u << 16;

/// Which local ids have definitions, for one location.
struct IdTables {
  const std::unordered_map<uint32_t, uint32_t>* regions;
  const std::vector<GlobalRegion>* global_regions;
  const std::unordered_map<uint32_t, uint32_t>* communicators;
  const std::unordered_map<uint32_t, uint32_t>* metrics;  ///< local -> global
  const std::unordered_map<uint32_t, uint32_t>* windows;
  const std::unordered_map<uint32_t, uint32_t>* rank_groups;
  const std::unordered_map<uint32_t, uint32_t>* files;
  const std::unordered_map<uint32_t, uint32_t>* file_names;
  const std::vector<GlobalCommunicator>* global_communicators;
  const std::vector<GlobalWindow>* global_windows = nullptr;  ///< where there are `windows`
  const std::vector<GlobalFile>* global_files = nullptr;      ///< where there are `files`
};

/// Looks local ids up without hashing for the ids that occur in practice.
class KnownIds {
 public:
  static constexpr uint8_t kUnknown = 0xff;

  explicit KnownIds(const std::unordered_map<uint32_t, uint32_t>& ids) : KnownIds(ids, nullptr) {}
  /// With `regions`, kind() is the region's paradigm.
  KnownIds(const std::unordered_map<uint32_t, uint32_t>& ids,
           const std::vector<GlobalRegion>* regions);

  bool contains(uint32_t id) const { return kind(id) != kUnknown; }
  uint8_t kind(uint32_t id) const { return id < dense_.size() ? dense_[id] : sparse_kind(id); }

 private:
  uint8_t sparse_kind(uint32_t id) const;

  std::vector<uint8_t> dense_;
  std::unordered_map<uint32_t, uint8_t> sparse_;
};

/// MPI_Win_fence, MPI_Win_set_info
bool is_numbered_on_window(const Record& record);
/// A collective on an open file. Of one that closes it, or ends what it began, other events tell.
bool is_collective_on_file(const Record& record);
/// The second half of a split read or write: its end, also when it failed.
bool is_split_end(const Record& record);

class EventOrder {
 public:
  using Sink = std::function<Status(std::span<const Event>)>;

  /// `outcome` and `tally` collect the counts; `requests` and `open_io` follow requests and
  /// transfers over the locations of a group.
  EventOrder(const clock::ClockMap& clock, const IdTables& ids, GroupRequests* requests,
             OpenIo* open_io, Outcome* outcome, LocationTally* tally, Sink sink);

  /// Takes the next batch of the location.   Errors: those of the sink.
  Status add(const spool::StreamBatch& batch);

  /// Sends out what is held back, although nothing encloses it yet.
  void settle() { release_all(UINT64_MAX); }

  /// Sends out what is held back and closes what is open, not before `end_ticks` (0: unknown).
  Status finish(uint64_t end_ticks);

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Node {
    Record record;
    uint64_t end_ticks;
    uint32_t first_child = kNone;
    uint32_t last_child = kNone;
    uint32_t next = kNone;
    uint32_t counters = kNone;  ///< in held_counters_
    uint16_t height = 0;
  };
  struct Region {
    uint32_t id;
    uint64_t start_ticks;
    uint64_t unseen_count = 0;  ///< not 0: stands for so many that began in a hole
  };
  enum class Close : uint8_t { kEnded, kOpenAtEnd, kCut };

  void add_record(const Record& record);
  void count(const RecordHead& head);
  void resync(std::span<const spool::OpenRegion> open, std::span<const Record> losses);

  // The forest (event_forest.cpp).
  void hold(const Record& record);
  bool hold_in_open_call(uint32_t node);
  uint32_t adopt(const Record& record, Node* parent);
  void release(uint64_t limit_ticks);
  void release_all(uint64_t limit_ticks);
  void emit_list(uint32_t first, uint64_t limit_ticks);
  void emit_node(const Node& node, uint64_t limit_ticks);

  // Single records -> events (record_events.cpp).
  void emit_simple(const Record& record, const Record* counters);
  void emit_span(const Record& record, uint32_t children, const Record* counters);
  void emit_call(const Record& record);
  void begin_transfer(const Record& record, uint64_t time_ns);
  void end_transfer(const Record& record, uint64_t time_ns);
  void emit_message(EventKind kind, uint64_t time_ns, const Record& record, uint64_t peer_tag,
                    uint64_t bytes, uint64_t request);
  void emit_completion(const Record& record);
  void emit_end_alone(const Record& record, uint64_t time_ns);
  void emit_collective(EventKind kind, const LiveRequest& collective, uint64_t time_ns);
  void emit_lost(const Record& record, uint64_t limit_ticks);
  void emit_sample(const Record& record);
  void leave_region(uint32_t region, uint64_t time_ns);
  void close_regions(size_t depth, uint64_t time_ns, Close how);
  void close_newest(uint64_t time_ns, Close how);
  void cut_regions(uint32_t count, uint64_t time_ns);
  void push_unseen(uint64_t count);
  bool has_room(uint32_t region);
  bool was_left_out(uint32_t region);
  void enter_open(const spool::OpenRegion& region);
  Event& enter_region(uint32_t region, uint64_t start_ticks);
  void emit_begin(const Record& record, const Record* counters);
  void emit_end(const Record& record, const Record* counters);
  void emit_mark(const Record& record);

  // Operations of NCCL (nccl_events.cpp).
  void emit_nccl(const Record& record);

  // Counters at the borders of calls (counter_events.cpp).
  bool has_counters_of(const RecordHead& call) const;
  const Record* take_border_counters(const RecordHead& border);
  void emit_counters(const Record* counters, bool at_exit, uint64_t time_ns);
  uint64_t sum_of_counter(uint32_t index, uint64_t value);

  // Records of one-sided communication (rma_events.cpp).
  void begin_rma(const Record& record, uint64_t time_ns);
  void end_rma(const Record& record, uint64_t time_ns);
  void emit_transfer(const Record& record, uint64_t time_ns, bool is_known);
  void complete_transfers(const Record& record, uint64_t time_ns);
  void complete_rma_request(const Record& record, const LiveRequest& request, uint64_t time_ns);
  Event& append_rma(EventKind kind, uint64_t time_ns, const Record& record);
  // Files (io_events.cpp).
  Event& append_io(EventKind kind, uint64_t time_ns, const Record& record);
  void begin_io(const Record& record, uint64_t time_ns);
  void end_io(const Record& record, uint64_t time_ns);
  void end_io_call(const Record& record, uint64_t time_ns);
  void emit_io_completion(const Record& record);

  /// `rank` as events have it: its own number, or its place among the members of this job; kNoPeer
  /// for a member of another world.
  int32_t rank_in(uint32_t communicator, int32_t rank) const {
    return rank < 0 || of_worlds_.empty() ? rank : known_rank(communicator, rank);
  }
  int32_t known_rank(uint32_t communicator, int32_t rank) const;
  bool is_foreign(uint32_t communicator, int32_t peer) const;
  bool is_partial(uint32_t communicator) const;
  bool is_partial(uint32_t communicator, CollectiveOperation operation) const;
  bool has_others(uint32_t communicator) const;
  bool concerns_nobody_else(const Record& record) const;
  static void tell_failed_collective(const Record& record, Event* enter);
  bool may_have_completed(const Record& completion) const;

  Event& append(EventKind kind, uint64_t time_ns, uint32_t region);
  uint32_t known_region(uint32_t id) const { return regions_.contains(id) ? id : kUnknownRegion; }
  void flush();

  clock::ClockMap::Cursor clock_;
  KnownIds regions_;
  KnownIds communicators_;
  std::unordered_map<uint32_t, const GlobalCommunicator*> of_worlds_;  ///< those of several worlds
  std::unordered_set<uint32_t> of_one_;                                ///< those of one member
  std::unordered_set<uint32_t> windows_of_one_;
  std::unordered_set<uint32_t> files_of_one_;
  KnownIds windows_;
  KnownIds rank_groups_;
  KnownIds files_;
  KnownIds file_names_;
  const std::unordered_map<uint32_t, uint32_t>* metrics_;
  OpenIo* open_io_;
  Outcome* outcome_;
  LocationTally* tally_;
  Sink sink_;
  Status status_;
  RequestTable requests_;
  PendingTransfers transfers_;
  std::vector<Event> events_;
  std::vector<NcclOperation> nccl_;        ///< of events_; never grows
  std::vector<NcclProxyWork> nccl_proxy_;  ///< the same
  std::vector<Region> open_;
  std::unordered_map<uint32_t, uint64_t> left_out_;  ///< how many regions are open beyond kMaxOpen
  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_;
  Record counters_{};  ///< of the call whose record comes next
  std::vector<Record> held_counters_;
  uint64_t counter_sum_[kMaxRegionCounters] = {};   ///< over the threads of the location
  uint64_t counter_last_[kMaxRegionCounters] = {};  ///< value of the thread that runs
  size_t span_base_ = 0;  ///< regions below were open before the span that is being sent out
  uint64_t last_ns_ = 0;
};

}  // namespace aon::writers
