/// The loop of the node's service: gives its page to whoever connects, reads while somebody is
/// connected, sleeps otherwise.
///
///     idle --a connection: all providers read--> reading --the last one hangs up--> idle
///
/// Thread: one.   Cost: idle: none, asleep in one system call; reading: that of its providers.
/// Errors: connections beyond kMaxReaders are sent away; their agents read for themselves.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/service/crash_log.h"
#include "core/service/publisher.h"

namespace aon::service {

constexpr size_t kMaxReaders = 1024;

/// Binds `path` (mode 0666, its folder 0755, made if need be) and listens. A socket that nobody
/// answers is replaced.   Errors: kBusy: a service answers there; kIo.
Result<UniqueFd> listen_at(const std::string& path);

class Server {
 public:
  /// `log`: of the kernel, or nothing.
  Server(UniqueFd listener, Publisher* publisher, std::optional<CrashLog> log);

  /// Until a byte can be read from `stop_fd` (a signalfd).
  void run(int stop_fd);

 private:
  void accept_all();
  bool greet(int reader) const;
  void drop(int reader);
  void read_log();

  UniqueFd listener_;
  Publisher* publisher_;
  std::optional<CrashLog> log_;
  UniqueFd epoll_;
  std::map<int, UniqueFd> readers_;
};

}  // namespace aon::service
