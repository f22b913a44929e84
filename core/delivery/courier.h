/// Brings the spool of a node to the agent of rank 0's node, which does not see this job directory
/// (receiver.h, docs/clusters.md): segments as they are closed, each time what was added to the
/// definitions, and every kAppendMs what was added to the others; at the end the rest, whole.
///
///     --connect()--> connected --send_new(), beat()--> connected --send_rest()--> delivered
///                       |--broken--> lost, connect() again  delivered --Assembled--> assembled
///                       |--Refused--> refused: again() says  assembled --remove_sent()
///                                     when to connect() again
///
/// Files are sent as they are on the disk: a worker that was killed may cut some of what was sent
/// already, so what can still change is sent once more, from its start, at the end. Rings that a
/// live process writes stay here; counts of processes without one are brought, too.
/// Thread: one.   Cost: reads of what was written, from the page cache; a message every second.
/// Errors: kIo, kUnavailable; the connection is over then, and the spool is as it was.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/cluster/address.h"
#include "core/cluster/frames.h"

namespace aon::delivery {

/// Who brings what.
struct Sender {
  std::string folder;  ///< DIR/spool/NODE
  std::string node;
  int32_t pid = 0;  ///< of the agent, with its start time
  uint64_t start_time_ticks = 0;
  uint32_t rank_count = 0;
  uint32_t world_size = 0;  ///< 0 unknown
};

class Courier {
 public:
  explicit Courier(Sender sender) : sender_(std::move(sender)) {}

  Status connect(const cluster::AgentAddress& address);
  bool is_connected() const { return static_cast<bool>(socket_); }
  /// When its host last took a connection, whatever came of it; 0: never.
  int64_t reached_ms() const { return reached_ms_; }
  /// Why the receiver did not want it when it was last tried; empty: it did, or was not reached.
  const std::string& refusal() const { return refusal_; }
  /// Whether it may want it later.
  cluster::Again again() const { return again_; }
  /// When the receiver last said that somebody makes the archive; 0: never.
  int64_t assembling_ms() const { return assembling_ms_; }

  /// Sends what is new, and tells what is gone.
  Status send_new();
  Status beat();
  /// The spool is complete: sends the rest and says so.
  Status send_rest();
  /// HOST:DIR of the archive that has it, empty as long as there is none. Waits at most
  /// `timeout_ms` for the news.   Errors: kIo.
  Result<std::string> wait_assembled(int timeout_ms);
  /// Removes what was sent and has not changed since.
  void remove_sent();

 private:
  struct Sent {
    uint64_t bytes = 0;
    uint64_t inode = 0;
    int64_t changed_ns = 0;
    bool is_final = false;  ///< it does not change any more
  };

  bool is_unchanged(const std::string& name, const Sent& sent) const;
  Status send_files(bool is_last);
  Status send_file(const std::string& name, bool is_final, bool from_start);
  Status send_link(const std::string& name);
  Status send_bytes(int file, const std::string& name, uint64_t offset, uint64_t total_bytes,
                    bool is_whole);
  Status send_all(const void* bytes, size_t byte_count);
  Status take_notice(int timeout_ms);
  Status lose(const std::string& what);

  Sender sender_;
  UniqueFd socket_;
  std::map<std::string, Sent> sent_;
  int64_t next_append_ms_ = 0;
  int64_t reached_ms_ = 0;
  int64_t assembling_ms_ = 0;
  std::string refusal_;
  cluster::Again again_ = cluster::Again::kNever;
  std::string place_;  ///< HOST:DIR, when the archive is there
};

}  // namespace aon::delivery
