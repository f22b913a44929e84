/// What the worker gives the keeper to hold: the descriptors of every process, registered pid and
/// waiting aon-run, so that the next worker finds them open after the fork. A message is one
/// packet on their socketpair; the worker answers a client only after it is there.
///
///     worker --Keep + descriptors--> keeper --KeepAnswer--> worker --Welcome--> process
///     worker --Drop----------------> keeper (closes them)
///
/// Thread: any.   Errors: false, errno set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/packet.h"
#include "core/base/unique_fd.h"

namespace aon::agent {

enum class KeepKind : uint32_t {
  kProcess = 0,     ///< connection, ring, pidfd
  kRegistered = 1,  ///< pidfd
  kWaiter = 2,      ///< connection
};
enum class KeepAction : uint32_t { kKeep = 1, kDrop = 2, kFinished = 3 };

struct KeepMessage {
  KeepAction action;
  KeepKind kind;
  uint32_t number;  ///< of the process, or running number of the waiter or registered pid
  int32_t pid;      ///< of a waiter: its child, 0 none
};

/// One thing the keeper holds.
struct Kept {
  KeepMessage message;
  std::vector<UniqueFd> descriptors;
};

/// The worker's end of the socketpair. Whoever waits for a Welcome does not wait for a file system
/// that the keeper hangs in: what was sent and is not answered in kAnswerMs lies in the socket, and
/// the keeper reads that to its end before it starts another worker.
/// Thread: the drain thread.   Cost: a round trip of about 50 us.
class KeeperLink {
 public:
  static constexpr int kAnswerMs = 5;  ///< a process waits four times as long

  explicit KeeperLink(UniqueFd socket) : socket_(std::move(socket)) {}
  /// Gives the keeper duplicates to hold; true when it has them, or will. Without a keeper (it was
  /// killed) also true: there will be no next worker.
  bool keep(KeepKind kind, uint32_t number, int32_t pid, std::span<const int> descriptors);
  void drop(KeepKind kind, uint32_t number);

 private:
  enum class Sent { kYes, kNoRoom, kNoKeeper };
  Sent send(const KeepMessage& message, std::span<const int> descriptors);
  std::optional<uint32_t> receive_answer(int timeout_ms);
  void send_drops();

  UniqueFd socket_;
  uint32_t unanswered_ = 0;         ///< messages before this one
  std::vector<KeepMessage> drops_;  ///< for which there was no room
};

}  // namespace aon::agent
