// What comes to the agent's socket: who connects, and what is said there.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/agent/message_check.h"
#include "core/agent/server.h"
#include "core/agent/timing.h"
#include "core/base/log.h"

namespace aon::agent {
namespace {

ucred peer_of(int connection) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
    return {0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  return peer;
}

/// What a process runs; empty when it has ended.
std::string program_of(int32_t pid) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored);
}

/// False also where the program is not known.
bool is_no_aon_run(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  return !name.empty() && name != "aon-run" && name != "aon-task";
}

/// Of who connected, also when it has ended and been reaped (Linux 6.17); else -1.
int peer_pidfd(int connection) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, which Debian 12 lacks
  int pidfd = -1;
  socklen_t bytes = sizeof(pidfd);
  return ::getsockopt(connection, SOL_SOCKET, kPeerPidfd, &pidfd, &bytes) == 0 ? pidfd : -1;
}

}  // namespace

/// One that was accepted, here or by somebody who handed it over.
void Server::add_connection(UniqueFd fd) {
  const ucred peer = peer_of(fd.get());
  if (peer.uid != ::geteuid()) {
    AON_LOG_WARNING("refused a connection of uid %u", peer.uid);
    return;
  }
  const uint32_t id = state_->header().connection_count.fetch_add(1, std::memory_order_relaxed);
  last_event_ns_ = monotonic_ns();
  Connection& connection = connections_[id];
  connection.fd = std::move(fd);
  connection.since_ns = last_event_ns_;
  connection.peer.pid = peer.pid;
  if (peer.pid != 0) {
    connection.peer.start_time_ticks = proc::start_time_ticks(peer.pid);
    connection.peer.program = program_of(peer.pid);
  }
  watch(connection.fd.get(), kConnection, id, EPOLLIN | EPOLLRDHUP);
  receive(id);
}

/// Of who has hung up. One that gave up on us lives, or has ended by itself; where nobody knows how
/// it has ended, `is_killed` is believed.
void Server::note_if_killed(int connection, const Peer& peer, bool is_killed) {
  if (peer.pid == 0 || proc::is_running(peer.pid, peer.start_time_ticks)) return;
  const UniqueFd pidfd(peer_pidfd(connection));
  if (const auto status = proc::exit_status(pidfd.get(), peer.pid, peer.start_time_ticks))
    is_killed = status->signal != 0;
  if (!is_killed) return;
  const std::string number = std::to_string(peer.pid);
  listener_->note(RecordingNote::kKilledEarly,
                  peer.program.empty() ? "process " + number : peer.program + " (" + number + ")");
}

void Server::receive(uint32_t id) {
  for (;;) {
    const auto it = connections_.find(id);
    if (it == connections_.end()) return;
    alignas(8) uint8_t bytes[kMaxMessageBytes];
    std::vector<UniqueFd> descriptors;
    const ssize_t got = receive_packet(it->second.fd.get(), bytes, &descriptors, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    const auto byte_count = static_cast<size_t>(got > 0 ? got : 0);
    if (checked_message_type(bytes, byte_count) == static_cast<uint32_t>(MessageType::kHandOver) &&
        descriptors.size() == 1) {
      add_connection(std::move(descriptors[0]));
      continue;
    }
    it->second.has_spoken |= got > 0;
    if (got > 0 && handle(id, it->second, bytes, byte_count)) continue;
    // An aon-run may only ask whether anybody is here.
    if (got == 0 && !it->second.has_spoken)
      note_if_killed(it->second.fd.get(), it->second.peer, is_no_aon_run(it->second.peer.program));
    // A hang-up, or not our protocol. An aon-run that exec()s its program hangs up here.
    if (connections_.count(id) != 0 && it->second.is_waiter) {
      unwatch(it->second.fd.get());
      keeper_->drop(KeepKind::kWaiter, id);
    }
    connections_.erase(id);
    return;
  }
}

bool Server::handle(uint32_t id, Connection& connection, const uint8_t* bytes, size_t byte_count) {
  const auto type = static_cast<MessageType>(checked_message_type(bytes, byte_count));
  if (type == MessageType::kHello) {
    Hello hello{};
    return read_message(bytes, byte_count, &hello) && attach(id, connection, hello);
  }
  if (type == MessageType::kRegister) {
    Register message{};
    if (!read_message(bytes, byte_count, &message)) return false;
    register_pid(message, peer_of(connection.fd.get()).pid);
    connection.registered_pid = message.pid;
    return true;
  }
  if (type == MessageType::kWait) {
    connection.is_waiter = true;
    note_child(connection, connection.registered_pid);
    const int fd = connection.fd.get();
    return keeper_->keep(KeepKind::kWaiter, id, connection.child_pid, {&fd, 1});
  }
  if (type == MessageType::kExited) {
    Exited message{};
    if (!read_message(bytes, byte_count, &message)) return false;
    take_exit(connection, message);
    return true;
  }
  return false;
}

/// Of a program that took the place of its aon-run, this peer is no parent: another reaps it.
void Server::note_child(Connection& connection, int32_t pid) {
  const int32_t peer = peer_of(connection.fd.get()).pid;
  const bool is_child = pid > 0 && peer > 0 && proc::parent_of(pid) == peer;
  connection.child_pid = is_child ? pid : 0;
  connection.child_start_ticks = is_child ? proc::start_time_ticks(pid) : 0;
}

/// What is not believed is left alone: of a child that was reaped before its parent's messages were
/// read nobody knows whose it was, and the parent waits for its files all the same.
void Server::take_exit(Connection& connection, const Exited& message) {
  if (connection.child_pid == 0 || message.pid != connection.child_pid ||
      told_exits_.size() >= kMaxRegistered)
    return;
  told_exits_.push_back(
      {message.pid, connection.child_start_ticks, proc::decode(message.wait_status)});
  connection.child_pid = 0;
}

/// A program that died in our own code before. True: it was told so.
bool Server::is_left_alone(const Connection& connection, const Hello& hello) {
  const std::string program(hello.program, strnlen(hello.program, sizeof(hello.program) - 1));
  if (std::find(left_alone_.begin(), left_alone_.end(), program) == left_alone_.end()) return false;
  const MessageHeader answer{kProtocolMagic, kProtocolVersion, MessageType::kLeftAlone,
                             sizeof(MessageHeader)};
  send_struct(connection.fd.get(), answer);
  listener_->note(RecordingNote::kLeftAlone, program);
  return true;
}

bool Server::attach(uint32_t id, Connection& connection, const Hello& hello) {
  const ucred peer = peer_of(connection.fd.get());
  const bool is_elsewhere = peer.pid == 0;
  const int32_t pid = is_elsewhere ? hello.pid : peer.pid;
  // Whatever becomes of it, the program is known to speak for itself: to the next worker, too.
  for (const uint32_t number : is_elsewhere ? std::vector<uint32_t>() : busy_.forget_pid(pid))
    state_->header().registered[number].may_be_followed = 0;
  if (hello.clock_is_tsc > 1 || is_left_alone(connection, hello)) return false;
  const Peer who{is_elsewhere ? 0 : pid, connection.peer.start_time_ticks,
                 std::string(hello.program, strnlen(hello.program, sizeof(hello.program)))};
  uint32_t cell = is_elsewhere ? kNoCell : find_followed(pid);
  if (cell != kNoCell) {
    if (!take_over(cell, std::move(connection.fd), hello)) return false;
  } else {
    if (!is_elsewhere) end_earlier_images(pid);
    Newcomer newcomer{pid,           hello.rank,    hello.world_size, hello.start_time_ticks,
                      hello.program, Followed::kNot};
    newcomer.is_in_init = is_mpi_init(hello.begun);
    newcomer.is_elsewhere = is_elsewhere;
    UniqueFd pidfd(is_elsewhere ? -1 : proc::open_pidfd(pid));
    if (!pidfd && !is_elsewhere) pidfd.reset(peer_pidfd(connection.fd.get()));
    if (!add_process(newcomer, std::move(connection.fd), std::move(pidfd), &cell)) return false;
  }
  connections_.erase(id);
  // Who hung up before the answer has given up on us, or died: nobody knows where it is.
  const int its_end = processes_.at(cell).connection.get();
  if (proc::has_hung_up(its_end)) {
    note_if_killed(its_end, who, false);
  } else {
    drainer_->show_call(cell, hello.begun);
  }
  welcome(cell);
  return true;
}

/// It goes on with a file of its own, at once. That the agent ends is no matter of its memory.
bool Server::refuse(const Newcomer& newcomer, int connection, const Error& reason) {
  AON_LOG_WARNING("pid %d: %s", newcomer.pid, reason.message.c_str());
  const MessageHeader refused{kProtocolMagic, kProtocolVersion, MessageType::kRefused,
                              sizeof(refused)};
  if (newcomer.followed == Followed::kNot) {
    send_struct(connection, refused);
    if (!newcomer.is_elsewhere) below_.refused(newcomer.pid);
  }
  if (!have_all_ended_) listener_->process_refused(reason);
  return false;
}

void Server::welcome(uint32_t cell) {
  const RingGeometry geometry = drainer_->geometry(cell);
  Welcome welcome{};
  welcome.header = {kProtocolMagic, kProtocolVersion, MessageType::kWelcome, sizeof(Welcome)};
  welcome.process = state_->process(cell).process;
  welcome.slot_count = geometry.slot_count;
  welcome.chunk_count = geometry.chunk_count;
  welcome.total_bytes = geometry.total_bytes;
  const int descriptors[] = {drainer_->ring_fd(cell), bell_fd_};
  send_struct(processes_.at(cell).connection.get(), welcome, descriptors);
}

}  // namespace aon::agent
