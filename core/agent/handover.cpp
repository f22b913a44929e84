#include "core/agent/handover.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace aon::agent {

KeeperLink::Sent KeeperLink::send(const KeepMessage& message, std::span<const int> descriptors) {
  if (send_struct(socket_.get(), message, descriptors, MSG_DONTWAIT)) return Sent::kYes;
  // Too many descriptors on their way to others of this user, or no memory: later there is room.
  const bool is_for_now =
      errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS || errno == ENOMEM;
  if (is_for_now) return Sent::kNoRoom;
  socket_.reset();
  return Sent::kNoKeeper;
}

/// The next answer in the order of the messages; nullopt: none came in time, or none will.
std::optional<uint32_t> KeeperLink::receive_answer(int timeout_ms) {
  pollfd readable{socket_.get(), POLLIN, 0};
  while (::poll(&readable, 1, timeout_ms) < 0 && errno == EINTR) {
  }
  uint32_t answer = 0;
  const ssize_t got = ::recv(socket_.get(), &answer, sizeof(answer), MSG_DONTWAIT);
  if (got == sizeof(answer)) return answer;
  if (got >= 0 || errno != EAGAIN) socket_.reset();
  return std::nullopt;
}

bool KeeperLink::keep(KeepKind kind, uint32_t number, int32_t pid,
                      std::span<const int> descriptors) {
  send_drops();
  if (!socket_) return true;
  const Sent sent = send({KeepAction::kKeep, kind, number, pid}, descriptors);
  if (sent != Sent::kYes) return sent == Sent::kNoKeeper;
  // A keeper that is late with an earlier one is not waited for again.
  const int timeout_ms = unanswered_ == 0 ? kAnswerMs : 0;
  ++unanswered_;
  while (socket_ && unanswered_ != 0) {
    const std::optional<uint32_t> answer = receive_answer(timeout_ms);
    if (!answer) return true;
    if (--unanswered_ == 0) return *answer == 1;
  }
  return true;
}

void KeeperLink::drop(KeepKind kind, uint32_t number) {
  if (!socket_) return;
  drops_.push_back({KeepAction::kDrop, kind, number, 0});
  send_drops();
}

void KeeperLink::send_drops() {
  while (socket_ && !drops_.empty() && send(drops_.front(), {}) == Sent::kYes)
    drops_.erase(drops_.begin());
}

}  // namespace aon::agent
