/// Hangs: collectives that some members have entered, and have not left for as long as --hang says,
/// and who of the others did not arrive.
///
///     agent: a call is open for long -> Model::open_calls
///     events: whether it has returned since, and how many collectives each process has finished on
///     each communicator -> the number of the one that is open
///
/// | a member                                                    | is            |
/// |-------------------------------------------------------------|---------------|
/// | in the call, or in another one at the same number           | arrived       |
/// | finished more than the number                               | passed        |
/// | finished as many or fewer, and is not in the call           | absent        |
/// | has a hole in its records (a loss, an eviction, a failed    | unknown       |
/// | call, MPI_Pcontrol, two threads on the communicator, no end |               |
/// | in damaged definitions), or nothing of it was recorded      |               |
///
/// A process in MPI_Wait or MPI_Waitall that has the requests of collectives in flight, and no
/// others, is in the one of them that somebody has not started; who has is "started", not absent.
/// Persistent ones are numbered by themselves: the how manieth start of which one. Which requests a
/// call waits for is not recorded. So nobody is named where it could be several, nor where more
/// than one thread of a process calls MPI, it uses one-sided communication or has kMaxInFlight.
///
/// Callers whose own number is not known make one hang without number; there a member that is in no
/// collective of the communicator is absent if anything is known of it, its end included where
/// definitions are damaged. Neighbourhood collectives and those that make or free communicators,
/// windows or files are not called by all members alike: they are open calls and no hangs.
/// Thread: one.   Cost: a few ns per event; memory per process and communicator, for kMaxPartners
/// pairs of a process and whom it exchanges messages with, and for kMaxInFlightOfAll requests:
/// beyond, nobody is named.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "writers/hang/nccl_hang.h"
#include "writers/hang/pending.h"
#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr size_t kMaxHangs = 16;  ///< of one communicator; the first ones are told

/// A member in a collective, or in a call that waits for it.
struct Arrival {
  uint32_t call = 0;    ///< in Model::open_calls
  uint32_t region = 0;  ///< of the collective; kStartedRegion: a persistent one
};
constexpr uint32_t kStartedRegion = UINT32_MAX - 1;

/// One collective that does not end.
struct Hang {
  uint32_t communicator = 0;
  std::optional<uint64_t> number;  ///< of the communicator's collectives, from 0
  uint64_t instance = 0;           ///< of a persistent one (pack_instance), which has no number
  std::vector<Arrival> arrived;    ///< by region, call and group
  std::vector<uint32_t> started;   ///< groups: and are not waiting for it
  std::vector<uint32_t> absent;    ///< groups
  std::vector<uint32_t> passed;    ///< groups
  uint32_t unknown_count = 0;      ///< members
  bool is_mismatch = false;        ///< not all are in the same call
  uint64_t since_ns = UINT64_MAX;  ///< the first one came
};

/// Ranks that have sent fewer messages than a call may wait for, ascending: one of them at least is
/// waited for.
using Awaited = std::vector<uint32_t>;

struct HangReport {
  std::vector<Hang> hangs;              ///< by communicator and number
  std::map<uint32_t, Awaited> awaited;  ///< by index in Model::open_calls: of calls with messages
  std::vector<uint32_t> open_calls;  ///< indices in Model::open_calls: those that have not returned
  std::vector<uint8_t> has_finalized;  ///< by group: it has come to MPI_Finalize
  std::vector<uint64_t> last_ns;       ///< by group: last event, 0 none
  std::vector<NcclHang> nccl;          ///< operations of NCCL, the oldest first
  std::vector<NcclDisagreement> nccl_disagreements;
  uint64_t nccl_left_out_count = 0;  ///< operations of NCCL that hang, too
  std::vector<NcclHang> nccl_quiet;  ///< as NcclHangReport::quiet
  uint64_t nccl_quiet_left_out_count = 0;
};

/// The group of rank `peer` of a communicator, where that is a rank of this job.
std::optional<uint32_t> rank_member(const Model& model, uint32_t communicator, int32_t peer);

class HangFinder final : public Writer {
 public:
  static constexpr size_t kMaxPartners = size_t{1} << 21;  ///< 100 MiB
  static constexpr size_t kMaxInFlight = size_t{1} << 20;  ///< requests of a process
  /// Of all processes, 180 MiB: one for which there is no room counts as one with a hole.
  static constexpr size_t kMaxInFlightOfAll = size_t{1} << 21;

  /// `now_ns`: when a job is looked at that still runs; 0: its end.
  explicit HangFinder(uint64_t now_ns = 0) : now_ns_(now_ns) {}
  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;

  /// Valid after finish().
  const HangReport& report() const { return report_; }

 private:
  struct Count {
    uint64_t location;
    uint64_t finished = 0;
    uint8_t is_ambiguous = 0;  ///< two threads call them; any byte, for it may come from a file
  };
  struct MessageCount {
    uint64_t sent = 0;
    uint64_t received = 0;
  };
  struct Progress {
    std::unordered_map<uint32_t, Count> counts;  ///< by communicator
    /// By communicator and, in the low half, rank in it.
    std::unordered_map<uint64_t, MessageCount> messages;
    /// By communicator and preparation (in the low half): the last start of a persistent one.
    std::unordered_map<uint64_t, uint32_t> starts;
    PendingRequests pending;
    std::optional<uint64_t> mpi_location;  ///< the first one that called MPI
    /// Two threads call MPI, or there are requests of another kind.
    bool has_unknown_requests = false;
    bool has_open_message = false;  ///< a call that exchanges messages did not return
    bool is_forgetful = false;      ///< there was no room for all whom it exchanges messages with
    bool has_hole = false;
  };
  /// Which collective of a communicator: its number, or its instance; none: not known.
  struct Which {
    std::optional<uint64_t> number;
    uint64_t instance = 0;
    bool operator<(const Which& other) const {
      return std::tie(number, instance) < std::tie(other.number, other.instance);
    }
  };
  using Collective = std::pair<uint32_t, Which>;  ///< of a communicator
  /// What all members of communicators have started at least, as far as they are known; of each it
  /// is sought once.
  struct Least {
    std::unordered_map<uint32_t, uint64_t> numbers;
    std::unordered_map<uint64_t, uint32_t> starts;  ///< as Progress::starts
  };
  using Ranks = std::unordered_map<uint32_t, uint32_t>;
  enum class Presence : uint8_t { kUnknown, kAbsent, kStarted, kPassed };
  enum class Call : uint8_t { kOther, kMpi, kPause, kExchange, kFinalize };

  void add(const Event& event);
  void enter(const Event& event);
  bool count(const Event& event);
  void start(const Event& event);
  void add_request(const Event& event);
  void note_request(const Event& event, Progress* its);
  void count_in_flight(size_t before, Progress* progress);
  void lose(Progress* progress);
  MessageCount* messages_with(const Event& event);
  static void give_up_requests(Progress* progress);
  std::optional<uint64_t> number_of(uint32_t group, uint32_t communicator) const;
  bool is_collective(const OpenCall& call) const;
  void find_in(uint32_t communicator, std::span<const uint32_t> calls);
  void find_waits();
  void find_mismatches(std::map<Collective, std::vector<Arrival>>* waiting) const;
  bool may_be_judged(const OpenCall& call) const;
  std::optional<PendingCollective> awaited_collective(const OpenCall& call, Least* least) const;
  bool is_behind(const PendingCollective& collective, Least* least) const;
  void find_awaited();
  Awaited awaited_by(const OpenCall& call);
  std::optional<uint32_t> debtor(uint32_t group, const PendingMessage& message, uint64_t count);
  const Ranks& ranks_in(uint32_t communicator);
  Presence presence_of(uint32_t group, uint32_t communicator, const Which& which) const;
  void add_hang(uint32_t communicator, const Which& which, std::span<const Arrival> arrivals);

  const Model* model_ = nullptr;
  uint64_t now_ns_;
  NcclHangFinder nccl_;
  HangReport report_;
  std::vector<Call> region_calls_;             ///< by global region
  std::vector<Progress> progress_;             ///< by group
  size_t partner_count_ = 0;                   ///< in progress_
  size_t in_flight_count_ = 0;                 ///< requests in progress_
  std::unordered_map<uint32_t, Ranks> ranks_;  ///< by communicator: rank of each group
  profile::LocalIds regions_;
  profile::LocalIds communicators_;
  uint32_t group_ = UINT32_MAX;
  std::optional<uint32_t> unsaved_;  ///< the last group that began since save()
  uint64_t location_ = 0;
  bool is_thread_ = false;
  std::optional<uint32_t> open_call_;  ///< of the location, in Model::open_calls
  bool has_returned_ = false;
  bool is_open_at_end_ = false;  ///< the event before said so
  size_t depth_ = 0;             ///< of open regions
  size_t own_depth_ = 0;  ///< of the region that is the open call's own record; 0: it has none
};

/// Sentences for people, the hangs first; `now_ns` is when the job was looked at. None: nothing
/// is open for long.
std::vector<std::string> hang_lines(const Model& model, const HangReport& report, uint64_t now_ns);

/// The same of operations of NCCL, which hang_lines() has, too.
std::vector<std::string> nccl_hang_lines(const Model& model, const HangReport& report,
                                         uint64_t now_ns);
std::string nccl_hang_finding(const Model& model, const HangReport& report);
/// Of processes that were quiet and did not end well; empty: there are none.
std::string nccl_quiet_finding(const Model& model, const HangReport& report);

/// Of calls that do not return: who waits for whom; empty: there is none, or it is not known for
/// whom and `must_name`.
std::string stuck_finding(const Model& model, const HangReport& report, bool must_name);

/// Whether a look at all events may find a hang: a call was open for long, a process was quiet, or
/// NCCL is used.
bool may_hang(const Model& model);

/// The hang that says most in one sentence; empty: there is none.
std::string hang_finding(const Model& model, const HangReport& report);

}  // namespace aon::writers
