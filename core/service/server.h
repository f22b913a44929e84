/// The loop of the node's service: gives its page to whoever connects, reads while somebody is
/// connected, sleeps otherwise.
///
///     idle --a connection: all providers read--> reading --the last one hangs up--> idle
///
/// Thread: one.   Cost: idle: none, asleep in one system call; reading: that of its providers.
/// Errors: connections beyond kMaxReaders, or beyond kMaxReadersOfUser of one user, are sent away;
/// their agents read for themselves.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/base/descriptors.h"
#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/service/crash_log.h"
#include "core/service/publisher.h"

namespace aon::service {

constexpr size_t kMaxReaders = 1024;
constexpr size_t kMaxReadersOfUser = 64;
constexpr int kMostAccepted = 32;           ///< in a turn
constexpr uint64_t kFreshNs = 200'000'000;  ///< what was read so long ago is read again

/// A socket that listens, and the lock on its place, which is held as long.
struct Listener {
  UniqueFd socket;
  UniqueFd lock;
};

/// Binds `path` (mode 0666, its folder 0755, made if need be) and listens. A socket that an ended
/// service has left is replaced.   Errors: kBusy: a service holds the place; kUnavailable: others
/// may write to the folder; kIo.
Result<Listener> listen_at(const std::string& path);

/// Writes into the lock which process serves: the one that calls this.
void note_owner(const Listener& listener);

/// Ends the service at `path` and waits until its process has ended. Nothing to do where none
/// serves.   Errors: kUnavailable: it is not ours to end, or has not ended in time; kIo.
Status end_service(const std::string& path);

class Server {
 public:
  /// `log`: of the kernel, or nothing.
  Server(Listener listener, Publisher* publisher, std::optional<CrashLog> log);

  /// Until a byte can be read from `stop_fd` (a signalfd).
  void run(int stop_fd);

 private:
  struct Reader {
    UniqueFd fd;
    uid_t user;
  };

  void accept_some();
  void accept_one(UniqueFd fd);
  bool has_room_for(uid_t user) const;
  void freshen();
  bool greet(int reader) const;
  void drop(int reader);
  void read_log();

  Listener listener_;
  Publisher* publisher_;
  std::optional<CrashLog> log_;
  UniqueFd epoll_;
  SpareDescriptor spare_;
  std::map<int, Reader> readers_;
  uint64_t fresh_ns_ = 0;  ///< when everything was read
};

}  // namespace aon::service
