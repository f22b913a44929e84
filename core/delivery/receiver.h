/// Takes the spools of nodes that do not see this job directory (docs/clusters.md): the part of
/// rank 0's node. Each courier has a connection; its files go to DIR/spool/NODE, and its marks in
/// DIR/agents (presence.h) are kept for it, so that whoever makes the archive sees its node as one
/// that shares the directory.
///
///     accepted --proof right--> known --Offer--> receiving --Complete, synced--> delivered
///     delivered --an archive that has it--> Assembled, closed
///     known, receiving, delivered --no room, not to be had--> Refused(reason, again), closed
///                                 --silent for kSilentMs, nonsense--> dropped
///     receiving after its Complete, delivered --courier gone--> leaver: all of it is here, and it
///                                             stays a guest until an archive has it
///
/// What a courier says is untrusted: names (names.h), sizes, order; it writes below a folder that
/// is new and its own only, at most what --disk allows a node, and no more than the file system can
/// spare. Nothing waits for a courier: the lease of one that is gone runs out. Nor for the disk:
/// while files are synced (syncs.h), others are heard.
/// Thread: one.   Cost: asleep; a copy per byte.   Errors: told in the log; the courier keeps what
/// it has.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/cluster/address.h"
#include "core/cluster/frames.h"
#include "core/delivery/marks.h"
#include "core/delivery/places.h"
#include "core/delivery/syncs.h"

namespace aon::delivery {

constexpr int kSilentMs = 15'000;
constexpr int64_t kLongestSyncMs = 600'000;  ///< a disk that takes longer does not come back
constexpr size_t kMaxGuests = 4096;
constexpr uint32_t kMaxPartBytes = 1u << 20;  ///< in one frame

struct ReceiverSettings {
  std::string job_folder;
  std::string node;               ///< this one, whose spool nobody else may bring
  uint64_t node_bytes = 0;        ///< of one other node
  uint32_t world_size = 0;        ///< of the launch; couriers of another one are refused
  bool waits_for_archive = true;  ///< false: a courier is told as soon as all it brought is here
  bool drops_spool = false;       ///< an archive that has it leaves no spool
  int64_t longest_sync_ms = kLongestSyncMs;
};

class Receiver {
 public:
  explicit Receiver(ReceiverSettings settings);
  ~Receiver();

  /// Listens on `hosts`.   Errors: kUnavailable when none can be listened on.
  Result<cluster::AgentAddress> start(const std::vector<std::string>& hosts);

  /// Does what there is to do; waits at most `timeout_ms` for something, or for `wake_fd` to become
  /// readable (-1: none).
  void step(int timeout_ms, int wake_fd = -1);

  /// Couriers that are not told yet that an archive has theirs, and of these the ones that still
  /// bring; the ranks of all that ever came.
  uint32_t guest_count() const;
  uint32_t open_count() const;
  uint32_t rank_count() const { return places_.rank_count(); }

 private:
  struct Guest;

  void accept_all(int listener);
  void make_room_for_newcomer();
  bool receive(Guest& guest);
  bool receive_payload(Guest& guest);
  bool handle(Guest& guest);
  bool take_offer(Guest& guest, const cluster::Offer& offer);
  bool take_part(Guest& guest, const cluster::Part& part);
  Status open_part(Guest& guest, const cluster::Part& part, const std::string& name);
  Status leave_origin(Guest& guest);
  bool end_part(Guest& guest);
  bool take_gone(Guest& guest, const cluster::Gone& gone);
  bool take_complete(Guest& guest);
  void take_synced();
  void deliver(Guest& guest);
  bool has_room(const Guest& guest, uint64_t more_bytes) const;
  void look_after_guests();
  bool look_after(Guest& guest, int64_t now_ms);
  bool look_after_complete(Guest& guest);
  void tell_assembling(int64_t now_ms);
  bool is_in_archive(const Guest& guest) const;
  bool tell_assembled(Guest& guest);
  bool refuse(Guest& guest, const Error& error);
  bool refuse(Guest& guest, const std::string& reason, cluster::Again again);
  void drop(int fd, const char* why);

  ReceiverSettings settings_;
  cluster::Token token_;
  std::vector<UniqueFd> listeners_;
  std::map<int, std::unique_ptr<Guest>> guests_;  ///< by descriptor; leavers by a negative number
  int leaver_number_ = -1;                        ///< the last one given; -1 is no descriptor
  Places places_;
  Syncs syncs_;
  uint64_t offer_count_ = 0;
  int64_t next_look_ms_ = 0;
  int64_t next_telling_ms_ = 0;
};

}  // namespace aon::delivery
