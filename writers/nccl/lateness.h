/// Who comes late to NCCL's operations and why, what they take when nobody is late, and which links
/// are slow: told from times on the GPU alone, so no two clocks are compared.
///
/// All ranks' parts of an operation are brought together by communicator, function and NCCL's
/// sequence number, both ends of a transfer by the pair and their own count. In an operation in
/// which each needs all others (AllReduce, AllGather, ReduceScatter, AlltoAll), and between the two
/// ends of a transfer,
///
///     wait of a member = its time on the GPU - the shortest one     (0: it came last)
///
/// and the last one, like those that were late with it (lateness.h), was so because of, by its own
/// clock,
///
///     launch |<- its kernel was queued ->| begin
///     its GPU: as much of the others' wait as it was queued for (the launch was in time)
///     its host: the rest (the GPU was ready before the host was)
///     not told: the launch was not seen (replayed graphs)
///
/// Who is last because NCCL itself took longer there, from the call to the launch, is not late when
/// something is first used: then it connects and loads kernels, and one process is done with that
/// hundreds of ms after another. Such an operation, the first of its function or pair, type and
/// size, is counted, and blames nobody; of an NCCL that tells no launches (before 2.28) that is the
/// first of a communicator. Who takes longer in NCCL later has a busy core, or work of its own in a
/// group.
///
/// The shortest part is the operation without waiting. Where that is more than kSlowRatio times the
/// usual for its bytes, nobody was late and the operation was slow: its network, where the steps of
/// NCCL's proxies tell it (network_late.h), or its GPUs.
/// A transfer's is that of its link. Buffered sends (a few MiB) may end before their link has moved
/// the bytes: it looks faster then, never slower.
///
/// Times on the GPU are NCCL's own (level gpu), or those of the operation's kernel where CUPTI told
/// them and no other operation shares it (devices/nccl_kernels.h). Operations without, those of
/// which a member is missing and those with missed channels tell nothing; they are counted. So are
/// all of a communicator whose members do not count alike (graph_counts.h).
/// Thread: one.   Cost: some ns per operation, 100 ns for those with times; memory 8 MiB, the rest
/// in a file in the output's folder, and a row per member, function, size and link, bounded. With
/// keep_waits() another file, and 2 MiB; with steps of proxies what send_waits.h and network_late.h
/// say.
/// Errors: kIo, when that has no room.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "writers/devices/nccl_kernels.h"
#include "writers/lateness/lateness.h"
#include "writers/lateness/true_times.h"
#include "writers/nccl/graph_counts.h"
#include "writers/nccl/network_late.h"
#include "writers/nccl/send_waits.h"
#include "writers/profile/local_ids.h"
#include "writers/steps/steps.h"
#include "writers/waits/sorted_store.h"
#include "writers/writer.h"

namespace aon::writers::nccl {

struct OperationWait;  // operations.h

constexpr double kSlowRatio = kSlowOperationRatio;  ///< of links, too
constexpr size_t kMaxLinks = 1u << 19;
constexpr uint64_t kLeastConnectingNs = 1'000'000;  ///< longer in NCCL than others

/// A process and one of its devices.
struct LateMember {
  uint32_t group;
  uint32_t device;  ///< ordinal in the process; kNoDevice unknown
};

/// Why the others waited; the sum is LatenessRow::caused_ns.
struct Causes {
  uint64_t host_ns = 0;
  uint64_t gpu_ns = 0;
  uint64_t untold_ns = 0;
};

/// Transfers of 2^b to 2^(b+1) bytes from one member to another.
struct LinkRow {
  uint32_t source = 0;  ///< members
  uint32_t destination = 0;
  uint32_t log2_bytes = 0;
  bool is_in_node = false;  ///< both ends are on one node
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  double ratio =
      0;  ///< of its mean time to the median of its peers: of that size, in or between nodes
};

struct LatenessSummary {
  LatenessTable table;  ///< Attendance::group is an index in `members`
  std::vector<LateMember> members;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Causes> causes;  ///< of rows of `table`
  std::vector<TrueTimes> times;  ///< by communicator, region and bytes
  std::vector<LinkRow> links;    ///< by source, destination and size
  NetworkSummary network;
  uint64_t unmatched_send_count = 0;  ///< records of sends whose operation is not known
  uint64_t connecting_count = 0;      ///< operations whose last member NCCL itself held up
  uint64_t timed_count = 0;           ///< parts of operations with times on the GPU
  uint64_t told_count = 0;            ///< of these, those that NCCL told
  uint64_t untimed_count = 0;         ///< parts of operations without
  uint64_t unmatched_count = 0;  ///< parts whose operation is not whole, or has missed channels
  uint64_t left_out_count = 0;   ///< operations or transfers beyond kMaxSizes, kMaxLinks
  /// By row of StepSummary: what others waited for this process in operations that it called in the
  /// step and came late to (LatenessRow::late_caused_ns). Empty: there are no steps.
  std::vector<uint64_t> step_caused_ns;
};

/// The pair of members whose transfers take longest beyond what is usual; null `time_ns`: none.
struct SlowLink {
  uint32_t source = 0;
  uint32_t destination = 0;
  uint64_t count = 0;
  uint64_t time_ns = 0;
  uint64_t beyond_ns = 0;  ///< what the median link takes
};
SlowLink find_slow_link(const LatenessSummary& summary);

/// One end of a member's part of an operation in which it waited.
struct TimelineWait {
  uint64_t location;  ///< that of the communicator's timeline in the member: index
  uint64_t time_ns;   ///< on the GPU
  uint64_t wait_ns;   ///< 0: the begin of the part
  bool operator<(const TimelineWait& other) const {
    return std::tie(location, time_ns, wait_ns) <
           std::tie(other.location, other.time_ns, other.wait_ns);
  }
};
using TimelineWaits = SortedStore<TimelineWait>;

/// A writer that makes no files.
class LatenessAnalysis final : public Writer {
 public:
  // Of temporary files, for each end of an operation.
  static constexpr size_t kPartBytes = 80;
  /// And where steps of proxies are known.
  static constexpr size_t kSendBytes =
      SendWaitStore::kOperationBytes + NetworkLateness::kOperationBytes / 2;
  static constexpr size_t kWaitBytes = 2 * sizeof(TimelineWait);

  /// The temporary file goes to `folder`.
  explicit LatenessAnalysis(std::filesystem::path folder);
  /// Before begin(): read_waits() will be asked for.
  void keep_waits();
  /// Told within finish() what each member waited in each operation of which all are known.
  using WaitListener = std::function<void(const OperationWait&)>;
  void set_wait_listener(WaitListener listener) { tell_wait_ = std::move(listener); }
  /// Must have finished before finish(), and outlive it.
  void use_steps(const StepMeter* steps) { steps_ = steps; }

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  /// Of the current group, whose events have passed: what the operation's kernel took.
  Status add_kernel_times(const devices::TimedOperation& operation);
  Status end_location() override { return {}; }
  Status finish(const Outcome& outcome) override;
  /// Hands over the parts themselves, for only all ranks' are an operation: sizeof(Part) bytes for
  /// each operation of NCCL of the group.
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;

  /// Null before finish(), and when something failed.
  const LatenessSummary* summary() const { return is_done_ ? &summary_ : nullptr; }
  bool has_waits() const { return waits_.has_value() && is_done_; }
  /// What each member waited, from kLeastCallWaitNs on, on the timelines that are in the archive,
  /// in operations that end in its window. Only with has_waits().
  Result<TimelineWaits::Reader> read_waits() { return waits_->read(); }
  /// In operations that end before that.
  uint64_t waited_before_ns(uint64_t location) const {
    const auto found = waited_before_ns_.find(location);
    return found != waited_before_ns_.end() ? found->second : 0;
  }

 private:
  /// One member's part of an operation.
  struct Part {
    uint64_t key;  ///< region of a collective; of a transfer kTransfer, source and destination
    uint64_t sequence;
    uint64_t begin_ns;  ///< on the GPU
    uint64_t gpu_ns;
    uint64_t queued_ns;  ///< kNotTold
    uint64_t inside_ns;  ///< from its call to its launch; kNotTold, kConnects
    uint64_t bytes;
    uint32_t location;  ///< of the communicator's timeline: index; kNotInArchive
    uint32_t type;      ///< NcclType
    uint32_t communicator;
    uint32_t region;
    uint32_t place;  ///< rank in the communicator; of a transfer 0 source, 1 destination
    uint32_t member;
    PartKey part_key() const { return {key, sequence, communicator, place}; }
    bool is_of_one(const Part& other) const {
      return communicator == other.communicator && key == other.key && sequence == other.sequence;
    }
    bool operator<(const Part& other) const {
      return std::tie(communicator, key, sequence, place, member) <
             std::tie(other.communicator, other.key, other.sequence, other.place, other.member);
    }
  };
  static_assert(sizeof(Part) == kPartBytes);
  struct Place {
    uint32_t rank;
    uint32_t member;
    uint32_t location;  ///< as Part's
  };

  bool has_partners(const NcclOperation& operation) const;
  Status add(const NcclOperation& operation);
  Status add_part(const NcclOperation& operation);
  Status load_parts(StateIn* in, std::span<const uint32_t> members);
  uint32_t member_of(uint32_t group, uint32_t device);
  size_t wanted_count(const Part& part) const;
  bool is_whole(std::span<const Part> parts) const;
  Status match(std::span<const Part> parts);
  bool is_first_use(const Part& part);
  bool is_connecting(std::span<const Part> parts) const;
  void add_lateness(std::span<const Part> parts);
  Status add_sends(std::span<const Part> parts, uint64_t time_ns);
  bool are_apart(uint32_t communicator);
  static HeldMember held_member(std::span<const Part> parts, const LongestWaits& longest);
  void keep_wait(const Part& part, uint64_t wait_ns);
  void note_wait(const Part& part, uint64_t wait_ns);
  void sort_steps();
  void note_step(const Part& part, uint64_t caused_ns);
  void add_link(std::span<const Part> ends, uint64_t time_ns);
  void judge_links();

  std::filesystem::path folder_;
  const Model* model_ = nullptr;
  SortedStore<Part> store_;
  SendWaitStore sends_;
  bool has_steps_ = false;  ///< the current group may tell steps of proxies
  NetworkLateness network_;
  std::vector<SendWaits> operation_sends_;  ///< of the one that is matched
  std::map<uint32_t, bool> apart_;          ///< by communicator
  std::optional<TimelineWaits> waits_;
  std::unordered_map<uint64_t, uint64_t> waited_before_ns_;  ///< by location
  /// Of those in the archive, by group and local communicator: index.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> timelines_;
  LatenessSummary summary_;
  bool is_done_ = false;
  const StepMeter* steps_ = nullptr;
  std::vector<uint32_t> steps_in_order_;  ///< rows, by group and time; while operations are matched
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> member_ids_;  ///< (group, device)
  TrueTimeTable times_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, LinkRow> links_;
  GraphCounts graphs_;
  std::set<uint32_t> unlike_;  ///< communicators whose members do not count alike
  // While operations are matched: sizes (log2) that the current communicator and key have used, by
  // type.
  std::pair<uint32_t, uint64_t> user_ = {};
  std::array<uint64_t, kNcclTypeCount> used_sizes_ = {};
  // Of the current group.
  uint32_t group_ = UINT32_MAX;
  std::unordered_map<uint32_t, Place> places_;  ///< by local communicator
  profile::LocalIds communicators_;
  profile::LocalIds regions_;
  WaitListener tell_wait_;
};

/// What people should know of operations without times on the GPU; "" where these are few.
std::string untimed_text(const LatenessSummary& summary);

/// "rank 5 on n2 (GPU 1)".
std::string member_text(const Model& model, const LateMember& member);

}  // namespace aon::writers::nccl
