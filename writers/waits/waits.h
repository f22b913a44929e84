/// Waiting time: how much of a receive, send, wait or collective was waiting for a partner that
/// came late. Both ends of every message, and all members of every collective, are brought together
/// after the last event; times are those of the corrected clocks.
///
/// | kind                | who waits, and how long                                                |
/// |---------------------|------------------------------------------------------------------------|
/// | late sender         | a receive (MPI_Recv, MPI_Wait...) until its send was called            |
/// | late receiver       | a send that does not return before its receive was posted, until then  |
/// | wait at barrier     | until the last member has entered                                      |
/// | wait at N x N       | the same in an all-to-all operation (Allreduce, Allgather, ...)        |
/// | late broadcast      | a member of a one-to-all operation until the root has entered          |
/// | early reduce        | the root of an all-to-one operation until the first other has entered  |
/// | early scan          | a member of a scan until all of lower rank have entered                |
/// | wait for neighbours | a member of a neighbourhood collective until the last of those whose   |
/// |                     | data it gets has entered                                               |
/// | wait at create      | a member that makes a communicator or window until the last one has    |
/// |                     | entered of those that enter before it leaves; an upper bound           |
/// | wait at free        | the same where a communicator or window is freed                       |
/// | wait at fence       | the same in MPI_Win_fence                                              |
/// | wait at file        | the same in a collective call on a file                                |
/// | wait at set_info    | the same where hints of a communicator or window are set               |
///
/// On an inter-communicator each group waits for the other one alone (MPI-4.1, 6.2.3), and where
/// data moves in one direction only, the group that gets none does not wait in N x N operations.
///
/// A non-blocking collective is entered by the call that starts it, and waited for in the one that
/// completes it: who came late only in completing it (and perhaps moved nothing until then) is not
/// seen. None is longer than the call in which it was waited. The definitions are those of
/// Scalasca's wait states (M. Geimer et al., "The Scalasca performance toolset architecture",
/// 2010), which has none for neighbourhoods and files, and its RMA patterns "wait at create", "wait
/// at free" and "wait at fence" for windows alone (M.-A. Hermanns et al., "Scalable detection of
/// MPI-2 remote memory access inefficiency patterns", 2009). A call that completes several requests
/// waits as long as for the latest of them, and the kind is that of this one: no time counts twice.
/// So does MPI_Sendrecv, which sends and receives.
/// Whether a send in it was copied at once (eager) cannot be known, so late receivers are an upper
/// bound.
///
/// Messages of one source, destination, tag and communicator match in the order in which they were
/// posted (MPI-3.1, 3.5: non-overtaking); collectives of a communicator in the order of their
/// calls. A hole in that order would match wrong partners, so what a process did from one on is
/// left out, and counted: from a loss, a message or collective that failed, MPI_Pcontrol, the post
/// of a receive that was freed or not seen completed, a message taken out by MPI_Mprobe while
/// others were received; the last two leave out messages alone. A collective that failed on all
/// members alike (a wrong argument, say) is no hole. Left out are also an envelope from the second
/// thread on that posts it, communicators on which several threads of a process call collectives,
/// and collectives of which a member is not there, or has more sources than a definition holds, or
/// was not seen to complete it. Persistent collectives match in the order in which they were made,
/// and start by start; where a record does not say which it is, they are not counted at all.
///
/// The last five kinds are of calls that MPI lets return early (MPI_Comm_free, a fence with
/// MPI_MODE_NOPRECEDE, a collective write), so who left before another entered has not waited for
/// it, and nobody knows what else it did. Windows and files are known to all by what made them;
/// their calls match by the number of the call among those of its function on the window or file,
/// and so do those that make or free a communicator. Whom they meet is not known of
/// MPI_Comm_create_group, MPI_Intercomm_create, MPI_Comm_spawn and the like, which have others or a
/// part of the members: these are left out and counted, as is what a process made, freed, or did
/// with windows and files, from one such call on that failed; from one on that changes a file (its
/// view, say), what it did by the same function.
///
/// Of polls (MPI_Test and its like) only those are recorded that complete something. How long a
/// program has polled for it, and what it did in between, nobody knows; what is known is how long
/// that was at most: from the end of the thread's last other call of MPI until the partner came, or
/// the poll that completed it. Such rows are marked, and no part of any sum of waiting. No time is
/// in two of them. Time in calls that are not timed is no waiting.
///
/// `uncertain_ns` is the part of the waiting that the error of two nodes' clocks could explain.
///
/// Thread: one.   Cost: about 15 ns per event, 100 ns per message end and collective. Memory: at
/// most 128 MiB of ends, members and waits (the rest, 48 to 64 bytes each, in a file in the
/// output's folder), and 64 MiB for half a million rows of lateness. Of the location that is read:
/// 90 to 107 bytes per live request, 75 MiB at most, and 80 per message or collective that one
/// call completes, 80 MiB at most. Of its process: 100 bytes per communicator, and 43 per function
/// that it called on a communicator, window or file, 43 MiB at most.
/// Errors: kIo, when that has no room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "writers/lateness/lateness.h"
#include "writers/lateness/true_times.h"
#include "writers/writer.h"

namespace aon::writers {

enum class WaitKind : uint8_t {
  kLateSender,
  kLateReceiver,
  kBarrier,
  kNxN,
  kLateBroadcast,
  kEarlyReduce,
  kEarlyScan,
  kNeighbors,
  kCreate,
  kFree,
  kFence,
  kFile,
  kSetInfo,
};
constexpr size_t kWaitKindCount = 13;
const char* wait_kind_name(WaitKind kind);
/// Whether waits of the kind may have been something else in part.
bool is_upper_bound(WaitKind kind);

/// The waiting of one kind in one region (global id) of one location.
struct WaitRow {
  uint32_t location;  ///< index in Model::locations
  uint32_t region;
  WaitKind kind;
  uint64_t count = 0;  ///< calls that waited
  uint64_t wait_ns = 0;
  uint64_t max_ns = 0;
  uint64_t uncertain_ns = 0;
  bool is_polled = false;  ///< no waiting that is known: what polls waited at most
};

/// What hides what a process did from then on.
enum class Hole : uint8_t {
  kLoss,        ///< of records
  kFailure,     ///< of a call that may have exchanged something
  kPause,       ///< MPI_Pcontrol(0)
  kReceive,     ///< freed, or not seen to complete
  kProbe,       ///< a message was taken out while others were received
  kThreads,     ///< another thread of the process has posted there, too
  kWorlds,      ///< not of a process: the communicator has those of several worlds
  kUnreceived,  ///< not of a process: a send, of which no receive is there
};
constexpr size_t kHoleCount = 8;

/// How many processes have one; of the last three: how often that left something out.
struct Holes {
  uint64_t counts[kHoleCount] = {};
  uint64_t& operator[](Hole hole) { return counts[static_cast<size_t>(hole)]; }
  uint64_t operator[](Hole hole) const { return counts[static_cast<size_t>(hole)]; }
};

/// What seems to end on one node before it began on another: by how much the clocks are wrong at
/// least. Messages whose receive returned before the send was called, and collectives of all to all
/// that one left before another had entered.
struct ClockViolations {
  uint64_t message_count = 0;
  uint64_t collective_count = 0;
  uint64_t max_ns = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> by_nodes;  ///< (smaller, larger) -> largest, ns
};

struct WaitSummary {
  std::vector<WaitRow> rows;  ///< by location, region and kind
  ClockViolations clock_violations;
  uint64_t message_count = 0;
  uint64_t unmatched_count = 0;  ///< ends of messages without the other one, or left out
  uint64_t collective_count = 0;
  uint64_t incomplete_count = 0;     ///< collectives that were not analysed
  uint64_t of_some_count = 0;        ///< of these: whom they meet is never known
  uint64_t alike_failure_count = 0;  ///< calls of collectives that failed on all members
  Holes holes;
  LatenessTable lateness;             ///< of barriers and all-to-all operations
  std::vector<TrueTimes> times;       ///< of these, where members moved as much; in order
  uint64_t times_left_out_count = 0;  ///< operations without a row in `times`: it is full
  uint64_t uncompared_count =
      0;  ///< operations that `lateness` lacks: it would have had to compare
          ///< starts by clocks that were never compared
};

/// A call that waited.
struct CallWait {
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint64_t wait_ns;
};
constexpr uint64_t kLeastCallWaitNs = 1000;  ///< shorter waits are in the sums only

/// Reads the calls that waited, by one reader after the other or at the same time.
/// Errors: kIo.
class CallWaits {
 public:
  virtual ~CallWaits() = default;
  /// The next call of `location` that waited, in time order; nothing behind the last one.
  /// Locations are asked for in the order of their indices.
  virtual Result<std::optional<CallWait>> next(uint32_t location) = 0;
};

/// A writer that makes no files.
class WaitAnalysis : public Writer {
 public:
  /// Null before finish(), and when something failed.
  virtual const WaitSummary* summary() const = 0;
  /// After finish(); the analysis outlives the reader.
  virtual Result<std::unique_ptr<CallWaits>> read_calls() = 0;
  /// As CallWaits::next() of one reader; nothing before finish().
  virtual Result<std::optional<CallWait>> next_call(uint32_t location) = 0;
};

/// Temporary files go to `folder`.
/// `beat` is called now and then.
std::unique_ptr<WaitAnalysis> make_wait_analysis(const std::filesystem::path& folder,
                                                 std::function<void()> beat = {});

}  // namespace aon::writers
