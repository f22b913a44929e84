#include "core/agent/handover.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace aon::agent {
bool KeeperLink::keep(KeepKind kind, uint32_t number, int32_t pid,
                      std::span<const int> descriptors) {
  if (!socket_) return true;
  const KeepMessage message{KeepAction::kKeep, kind, number, pid};
  uint32_t answer = 0;
  if (send_struct(socket_.get(), message, descriptors)) {
    ssize_t got;
    do {
      got = ::recv(socket_.get(), &answer, sizeof(answer), 0);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof(answer)) return answer == 1;
  }
  socket_.reset();
  return true;
}

void KeeperLink::drop(KeepKind kind, uint32_t number) {
  if (!socket_) return;
  if (!send_struct(socket_.get(), KeepMessage{KeepAction::kDrop, kind, number, 0})) socket_.reset();
}

}  // namespace aon::agent
