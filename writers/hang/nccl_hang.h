/// Operations of NCCL that do not end, and who of their members did not come.
///
/// | a member                                                 | is              |
/// |----------------------------------------------------------|-----------------|
/// | has it in flight, and nothing of the communicator before | arrived         |
/// | has it in flight behind another one; of a transfer: has  | called          |
/// | the other end in flight                                  |                 |
/// | has called it, or its other end, and that has ended      | passed          |
/// | has not come to it                                       | absent          |
/// | the same, and has a collective in flight to which one of | absent, and in  |
/// | those that arrived did not come                          | a wrong one     |
/// | the same, and has anything else in flight                | absent and held |
/// | may have come to it in a hole of its records, or nothing | unknown         |
/// | of it was recorded                                       |                 |
///
/// Holes are lost records, pauses (MPI_Pcontrol), calls of the communicator that are missing among
/// those told, and the end of a process that damaged definitions do not tell. A member has not come
/// to an operation for certain when it has told an earlier one of that function after its last
/// hole; what was in flight before a hole may be over.
///
/// Members match by communicator, function and NCCL's own sequence number, transfers by the pair
/// and its count. Of what a member has in flight on a communicator the oldest one counts: the
/// others wait behind it. An operation hangs when a process that has it in flight has recorded
/// nothing for --hang seconds, when it is kOldNs old, or when the communicator or program was given
/// up with it in flight for kGivenUpNs (ncclCommAbort of a watchdog), in which no other operation
/// of the process ended: a program may be ahead of its GPU when it exits. What was launched before
/// one of the communicator that has ended is over, and so is what was enqueued before that one
/// began. Of a process that has ended an operation is as old as it was then, and none hangs where
/// it has ended well, unless it was given up.
///
/// Without times on the GPU (level api, or lowered to it) it is not known what has ended. Where a
/// process is quiet and others have enqueued fewer operations of a function than it, that is told
/// as such. One of those that has enqueued more of another function than all who came is in that
/// one instead: a wrong one. Of two such camps the larger one is taken for the right one. Where
/// more members have gone on without an operation than have come to it, it is one too many.
///
/// Of transfers each pair is looked at: who is quiet and has enqueued more sends to a member than
/// that has receives from it, or the other way round, waits for the other end; both ends of the
/// latest one are compared by their bytes.
///
/// Where nobody is behind, but a member is quiet, the latest collectives are compared by their
/// number on the communicator: the first one that members called with another function, root, type
/// or size is told (a disagreement).
///
/// Of a process that is quiet and of which all that tells nothing its newest operation is told, if
/// that has no times on the GPU: it may wait for that, or compute. Not so where its newest call
/// is of a graph: of launches that come later nothing may be told.
///
/// What a graph launches again is counted by NCCL only where its calls were captured at level gpu
/// or above, and told to all members only then: of others nothing is looked at. Where members have
/// captured at different levels (the budget's are each node's own) none is compared with another.
/// NCCL 2.27 does not say which operations those are: what it does not count has the number of the
/// next one. Where two calls of a function have one number, none is compared, either.
///
/// What a spool says is not trusted: a member that two processes claim to be, or whose transfers
/// are beyond kMaxTransferKinds, is unknown.
/// Thread: one.   Cost: some ns per operation; memory per member and function, and for
/// kMaxTransferKinds pairs of members.
#pragma once

#include <aon/ring.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "writers/nccl/ended_kernels.h"
#include "writers/nccl/graph_counts.h"
#include "writers/nccl/in_flight.h"
#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers {

/// One operation in flight of one member.
struct NcclPart {
  uint32_t group = 0;
  uint32_t rank = 0;  ///< in the communicator
  uint32_t communicator = 0;
  uint32_t region = 0;
  uint32_t slot = kMainThreadSlot;  ///< of the thread that called it
  NcclOperation operation;
};

struct NcclMember {
  uint32_t group = 0;
  uint32_t rank = 0;                ///< in the communicator: a process may have several
  uint32_t slot = kMainThreadSlot;  ///< of the thread that called its newest operation
  bool operator==(const NcclMember& other) const {
    return group == other.group && rank == other.rank;
  }
};

struct NcclHang {
  uint32_t communicator = 0;
  uint32_t region = 0;
  uint64_t sequence = 0;
  std::vector<NcclPart> arrived;  ///< by rank; with `is_enqueued_only` not what they have in flight
  std::vector<NcclMember> absent;
  std::vector<NcclPart> wrong;      ///< of absent ones: what they are in instead
  std::vector<NcclPart> held;       ///< of the other absent ones: what they are in before it
  std::vector<NcclMember> went_on;  ///< of absent ones, level api: have called what came behind it
  std::vector<NcclPart> called;     ///< what they are in: an earlier one, or a transfer's other end
  std::vector<NcclMember> passed;
  std::optional<NcclPart> other_end;  ///< of a transfer: called with another size
  uint32_t unknown_count = 0;         ///< members whose records have holes or are not here
  uint32_t unlike_count = 0;          ///< members that may not count alike (GraphCounts)
  bool differs = false;           ///< bytes, types or roots of the arrived ones are not the same
  bool is_extra = false;          ///< level api: more have gone on without it than came
  bool is_enqueued_only = false;  ///< level api: enqueued, and not known whether it ended; of a
                                  ///< transfer: all who wait for one other end (in `absent`)
  uint64_t since_ns = UINT64_MAX;
};

/// A collective as a member called it.
struct NcclShape {
  uint32_t region = 0;
  int32_t root = kNoPeer;
  NcclType type = NcclType::kUnknown;
  uint64_t bytes = 0;
  bool operator<(const NcclShape& other) const {
    return std::tie(region, root, type, bytes) <
           std::tie(other.region, other.root, other.type, other.bytes);
  }
};

/// Members that called different collectives where NCCL wants the same of all: another function,
/// another root, type or size, or the same ones in another order.
struct NcclDisagreement {
  struct Camp {
    NcclShape shape;
    std::vector<NcclMember> members;
  };
  uint32_t communicator = 0;
  uint64_t number = 0;      ///< of the collective among those of the communicator, from 0
  std::vector<Camp> camps;  ///< the largest first
};

struct NcclHangReport {
  std::vector<NcclHang> hangs;                  ///< the oldest first
  std::vector<NcclDisagreement> disagreements;  ///< that no hang tells
  uint64_t left_out_count = 0;                  ///< hangs beyond kMaxHangs
  /// Operations behind which processes are quiet of which nothing else is told; in `arrived` those,
  /// and who has enqueued it and was ended.
  std::vector<NcclHang> quiet;
  uint64_t quiet_left_out_count = 0;
};

/// Definitions are damaged, and the end of the process is not among them: nothing says whether what
/// is there of its records is all.
bool is_end_unknown(const Model& model, const Group& group);

/// The program ended by itself and meant to.
bool has_ended_well(const Group& group);

/// When the process ended, good enough to see who ended seconds before others; nullopt: no end was
/// told.
std::optional<double> about_end_ns(const Model& model, const Group& group);

class NcclHangFinder {
 public:
  static constexpr uint64_t kOldNs = 60'000'000'000;
  static constexpr uint64_t kGivenUpNs = 1'000'000'000;
  static constexpr size_t kMaxHangs = 16;
  static constexpr size_t kMaxShapes = 16;  ///< latest collectives of a member that are compared
  static constexpr size_t kMaxTransferKinds = size_t{1} << 20;  ///< pairs, of each direction
  static constexpr uint64_t kMaxSequence = uint64_t{1} << 48;   ///< beyond it is damage

  /// `now_ns`: when the job is looked at.
  void begin(const Model& model, uint64_t now_ns);
  void begin_location(const Location& location);
  void add(const Event& event);
  /// The recording of the current group was paused or resumed.
  void add_pause(uint64_t time_ns);
  /// Of the current group, which ends; as Writer::save() and load().
  void save(StateOut* out);
  Status load(StateIn* in);
  /// `last_ns`: each group's last event, 0 none. `told`: groups of which it is told already what
  /// they wait for.
  NcclHangReport finish(std::span<const uint64_t> last_ns, std::set<uint32_t> told = {});

 private:
  static constexpr uint8_t kSomeCopied = 1;      ///< and some are not
  static constexpr uint8_t kRepeats = 2;         ///< different calls have one number
  using Member = std::pair<uint32_t, uint32_t>;  ///< communicator, rank
  using Kind = std::pair<uint32_t, int32_t>;     ///< region, peer (kNoPeer: a collective)
  struct Reached {
    uint64_t count = 0;  ///< one more than the highest sequence
    uint64_t call = 0;   ///< of that one, as below
    uint64_t start_ns = 0;
    uint64_t bytes = 0;
    uint64_t in_flight_from = UINT64_MAX;  ///< the lowest sequence in flight
    uint32_t slot = kMainThreadSlot;       ///< of the thread that told that one
    // No bool: a share of another node may have any byte there.
    uint8_t is_copied = 0;  ///< by copy engines, whose operations are counted apart
    uint8_t doubts = 0;     ///< of kSomeCopied, kRepeats
  };
  struct Latest {
    NcclShape shape;
    uint64_t start_ns = 0;
  };
  /// The newest call, with work or without.
  struct Newest {
    uint64_t start_ns = 0;
    uint64_t call = 0;
    uint32_t flags = 0;
    uint32_t reserved = 0;
  };
  struct Progress {
    uint32_t group = UINT32_MAX;
    bool is_disputed = false;   ///< another group says that it is this member
    bool is_forgetful = false;  ///< not all of its transfers are known: no room, or in graphs
    bool is_unlike = false;     ///< members do not count alike (GraphCounts)
    std::map<Kind, Reached> enqueued;
    std::optional<uint64_t> gap;        ///< the highest call that is missing
    std::optional<NcclPart> oldest;     ///< in flight
    uint32_t slot = kMainThreadSlot;    ///< of the thread that called the newest one
    uint64_t first_call = UINT64_MAX;   ///< of those told, 0 unless the first ones are missing
    uint64_t newest_call = 0;           ///< with work
    bool is_timed = false;              ///< of that one it is told what ends
    bool is_untimed = false;            ///< it is not
    std::map<uint64_t, Latest> latest;  ///< collectives, by call
    Newest newest;
  };

  void note_reached(const NcclOperation& operation, Reached* reached) const;
  void note_done(const NcclOperation& operation);
  void note_level(const NcclOperation& operation, Progress* progress) const;
  void note_in_flight(const nccl::InFlight::Enqueued& operation, uint32_t rank);
  void end_group();
  void claim(uint32_t group, Progress* progress);
  Reached* reached_of(const Kind& kind, Progress* progress);
  void add(const Progress& loaded, Progress* progress);
  bool is_known(const Progress& progress) const;
  Kind kind_of(uint32_t region, int32_t peer) const;
  void note_quiet();
  void note_unlike();
  bool is_quiet(uint32_t group) const { return is_quiet_[group]; }
  bool is_stuck(const NcclPart& part) const;
  NcclHang judge(std::vector<NcclPart> parts) const;
  std::vector<NcclHang> judge_oldest(std::vector<std::vector<NcclPart>> stuck,
                                     uint64_t* left_out_count) const;
  static void keep_hang(NcclHang hang, NcclHangReport* found);
  bool is_certain(const Progress& progress, const Kind& kind) const;
  void judge_member(const Member& member, const Kind& kind, NcclHang* hang) const;
  uint64_t surely_reached(const NcclPart& part, uint32_t region) const;
  void find_wrong(NcclHang* hang) const;
  using Members = std::map<Member, Progress>;
  struct Camp;
  static std::optional<NcclPart> instead(const Member& member, const Progress& progress,
                                         const Camp& camp);
  static bool went_on(const Progress& progress, const Camp& camp);
  void join(const Progress& progress, uint32_t region, Camp* camp) const;
  NcclHang behind(Members::const_iterator begin, Members::const_iterator end, uint32_t region,
                  uint64_t count) const;
  std::map<uint32_t, uint64_t> collect(Members::const_iterator begin, Members::const_iterator end);
  void find_behind(uint32_t communicator, NcclHangReport* found);
  Kind other_end(const Kind& kind, uint32_t rank) const;
  void compare_ends(const NcclPart& part, NcclHang* hang) const;
  void find_lone_ends(uint32_t communicator, NcclHangReport* found) const;
  static void keep(uint64_t call, const Latest& latest, Progress* progress);
  std::map<uint64_t, NcclShape> numbered(const Progress& progress) const;
  std::optional<NcclDisagreement> disagreement(Members::const_iterator begin,
                                               Members::const_iterator end) const;
  void find_disagreements(std::set<uint32_t> candidates, NcclHangReport* found);
  uint32_t member_count(uint32_t communicator) const;
  std::map<uint32_t, NcclPart> newest_of_quiet(const std::set<uint32_t>& told) const;
  void judge_others(NcclHang* hang) const;
  void find_quiet(std::set<uint32_t> told, NcclHangReport* found) const;

  const Model* model_ = nullptr;
  uint64_t now_ns_ = 0;
  std::span<const uint64_t> last_ns_;
  Members progress_;
  nccl::GraphCounts graphs_;
  std::vector<uint32_t> collectives_;  ///< regions of the communicator that is looked at
  std::vector<uint64_t> hole_end_ns_;  ///< by group; 0: no hole
  std::vector<uint64_t> done_ns_;      ///< by group: when its last operation ended on the GPU
  std::vector<bool> is_quiet_;         ///< by group
  size_t transfer_kind_count_ = 0;     ///< in progress_
  uint32_t send_ = 0;                  ///< region of ncclSend; beyond all: nobody called it
  uint32_t receive_ = 0;
  // Of the current group.
  uint32_t group_ = UINT32_MAX;
  uint32_t slot_ = kMainThreadSlot;  ///< of the current location
  nccl::InFlight in_flight_;
  nccl::EndedKernels ended_;
  profile::LocalIds communicators_;
  profile::LocalIds regions_;
};

}  // namespace aon::writers
