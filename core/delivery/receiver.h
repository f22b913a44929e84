/// Takes the spools of nodes that do not see this job directory (docs/clusters.md): the part of
/// rank 0's node. Each courier has a connection; its files go to DIR/spool/NODE, and its marks in
/// DIR/agents (presence.h) are kept for it, so that whoever makes the archive sees its node as one
/// that shares the directory.
///
///     accepted --proof right--> known --Offer--> receiving --Complete--> delivered
///     delivered --mark gone: the archive has it--> Assembled, closed
///     known, receiving --silent for kSilentMs, nonsense, no room--> dropped; its lease runs out
///
/// What a courier says is untrusted: names (names.h), sizes, order; it writes below its own folder
/// only, at most what --disk allows a node. Nothing waits for a courier.
/// Thread: one.   Cost: asleep; a copy per byte.   Errors: told in the log; the courier is dropped,
/// and keeps what it has.
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

namespace aon::delivery {

constexpr int kSilentMs = 15'000;
constexpr size_t kMaxGuests = 4096;
constexpr uint32_t kMaxPartBytes = 1u << 20;  ///< in one frame

class Receiver {
 public:
  /// `node`: this one, whose spool nobody else may bring. `node_bytes`: of one other node.
  /// Without `waits_for_archive` a courier is told as soon as all it brought is here.
  Receiver(std::string job_folder, std::string node, uint64_t node_bytes,
           bool waits_for_archive = true);
  ~Receiver();

  /// Listens on `hosts`.   Errors: kUnavailable when none can be listened on.
  Result<cluster::AgentAddress> start(const std::vector<std::string>& hosts);

  /// Does what there is to do; waits at most `timeout_ms` for something.
  void step(int timeout_ms);

  /// Couriers whose node is not in an archive yet; nodes that ever came, and their ranks.
  uint32_t guest_count() const;
  uint32_t node_count() const { return static_cast<uint32_t>(ranks_.size()); }
  uint32_t rank_count() const;

 private:
  struct Guest;

  void accept_all(int listener);
  bool receive(Guest& guest);
  bool receive_payload(Guest& guest);
  bool handle(Guest& guest);
  bool take_offer(Guest& guest, const cluster::Offer& offer);
  bool take_part(Guest& guest, const cluster::Part& part);
  bool end_part(Guest& guest);
  bool take_gone(Guest& guest, const cluster::Gone& gone);
  bool take_complete(Guest& guest);
  void look_after_guests();
  bool tell_assembled(int fd) const;
  void drop(int fd, const char* why);

  std::string job_folder_;
  std::string node_;
  uint64_t node_bytes_;
  bool waits_for_archive_;
  cluster::Token token_;
  std::vector<UniqueFd> listeners_;
  std::map<int, std::unique_ptr<Guest>> guests_;  ///< by descriptor
  std::map<std::string, uint32_t> ranks_;         ///< of nodes that ever came
  int64_t next_look_ms_ = 0;
};

}  // namespace aon::delivery
