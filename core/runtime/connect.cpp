// The handshake with the node's agent (core/agent/protocol.h), within the time it is given.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/agent/protocol.h"
#include "core/runtime/file_status.h"
#include "core/runtime/process.h"

namespace aon::runtime {
namespace {

class Deadline {
 public:
  explicit Deadline(int timeout_ms) : end_ms_(now_ms() + timeout_ms) {}
  int left_ms() const {
    const int64_t left = end_ms_ - now_ms();
    return left > 0 ? static_cast<int>(left) : 0;
  }

 private:
  static int64_t now_ms() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  }
  int64_t end_ms_;
};

/// Connected socket, or -1. A full backlog (many ranks start at once) is tried again.
int connect_socket(const char* path, const Deadline& deadline) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, strlen(path));
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  while (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if ((errno != EAGAIN && errno != EINTR) || deadline.left_ms() == 0) {
      close(fd);
      return -1;
    }
    poll(nullptr, 0, 1);
  }
  return fd;
}

/// The rule by which the agent judges who connects: AON_SOCKET reaches nodes on which no aon-run
/// ran, and there anybody may have made a socket of that name.
bool is_of_this_user(int fd) {
  ucred peer = {};
  socklen_t bytes = sizeof peer;
  const auto euid = static_cast<uid_t>(syscall(SYS_geteuid));  // not what fakeroot says
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == euid;
}

bool wait_for(int fd, short events, const Deadline& deadline) {
  pollfd entry = {fd, events, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, deadline.left_ms());
  } while (ready < 0 && errno == EINTR && deadline.left_ms() > 0);
  return ready == 1 && (entry.revents & events) != 0;
}

/// A connection to the agent, in memory that a fork()ed child inherits as it is. The child's own is
/// another: without this every generation of children that record has a descriptor more.
struct Connection {
  int fd;
  dev_t device;
  ino_t inode;
};
Connection g_last_connection;

void note_connection(int fd) {
  struct stat status = {};
  if (read_status(fd, &status) == 0) g_last_connection = {fd, status.st_dev, status.st_ino};
}

/// False: the program has closed it, and the number may be another file's.
bool is_still_there(const Connection& connection) {
  struct stat status = {};
  return connection.fd > 0 && read_status(connection.fd, &status) == 0 &&
         status.st_dev == connection.device && status.st_ino == connection.inode;
}

void close_inherited() {
  const Connection last = std::exchange(g_last_connection, {});
  if (is_still_there(last)) close(last.fd);
}

agent::BegunCall begun_now(const Site& call) {
  agent::BegunCall open = {};
  Writer clock = {};
  open.raw_ns = ticks(&clock);
  clock.clock_is_tsc = 1;
  open.tsc = ticks(&clock);
  open.region = call.id;
  open.role = call.role;
  open.paradigm = call.paradigm;
  strncpy(open.name, call.name, sizeof open.name - 1);
  return open;
}

bool send_hello(int fd, const Site* call, const Deadline& deadline) {
  const ProcessIdentity identity = process_identity();
  agent::Hello hello = {};
  hello.header = {agent::kProtocolMagic, agent::kProtocolVersion, agent::MessageType::kHello,
                  sizeof hello};
  hello.pid = identity.pid;
  hello.rank = identity.rank;
  hello.world_size = identity.world_size;
  hello.clock_is_tsc = tsc_is_constant() ? 1 : 0;
  hello.start_time_ticks = identity.start_time_ticks;
  static_assert(sizeof hello.program == sizeof identity.program);
  memcpy(hello.program, identity.program, sizeof hello.program);
  if (call != nullptr) hello.begun = begun_now(*call);
  if (!wait_for(fd, POLLOUT, deadline)) return false;
  return send(fd, &hello, sizeof hello, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof hello);
}

/// What comes with a Welcome; -1: not.
struct Received {
  int ring;
  int bell;
};

void close_all(const Received& received) {
  if (received.ring >= 0) close(received.ring);
  if (received.bell >= 0) close(received.bell);
}

Received receive_welcome(int fd, const Deadline& deadline, agent::Welcome* welcome) {
  Received received = {-1, -1};
  if (!wait_for(fd, POLLIN, deadline)) return received;
  iovec part = {welcome, sizeof *welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof received)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* attached = CMSG_FIRSTHDR(&message);
  if (bytes >= 0 && attached != nullptr && attached->cmsg_type == SCM_RIGHTS) {
    const size_t attached_bytes = attached->cmsg_len - CMSG_LEN(0);
    memcpy(&received, CMSG_DATA(attached), std::min(attached_bytes, sizeof received));
  }
  const bool is_welcome = bytes == static_cast<ssize_t>(sizeof *welcome) &&
                          welcome->header.magic == agent::kProtocolMagic &&
                          welcome->header.version == agent::kProtocolVersion &&
                          welcome->header.type == agent::MessageType::kWelcome;
  if (is_welcome) return received;
  close_all(received);
  return {-1, -1};
}

/// Memory that somebody cuts off would kill whoever writes there.
bool is_sealed(int memory) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(memory, F_GET_SEALS);
  return seals >= 0 && (seals & kNeeded) == kNeeded;
}

bool map_ring(Process& p, int ring, const agent::Welcome& welcome) {
  const RingGeometry geometry = ring_geometry(welcome.slot_count, welcome.chunk_count);
  struct stat status;
  if (geometry.total_bytes != welcome.total_bytes || welcome.slot_count > kMaxThreadSlots ||
      welcome.slot_count <= kMainThreadSlot || read_status(ring, &status) != 0 ||
      static_cast<uint64_t>(status.st_size) < geometry.total_bytes) {
    return false;
  }
  if (!is_sealed(ring)) {
    p.no_agent = NoAgent::kUnsealed;
    return false;
  }
  void* mapping = mmap(nullptr, geometry.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
  if (mapping == MAP_FAILED) return false;
  const RingHeader* header = static_cast<const RingHeader*>(mapping);
  if (header->magic != kRingMagic || header->abi != kRingAbi ||
      madvise(mapping, geometry.total_bytes, MADV_DONTFORK) != 0) {
    munmap(mapping, geometry.total_bytes);
    return false;
  }
  use_ring(p, mapping, geometry);
  // What the agent showed in our stead.
  ThreadSlot& main = p.slots[kMainThreadSlot];
  main.open[0].start_ticks.store(0, std::memory_order_relaxed);
  main.state.store(static_cast<uint32_t>(SlotState::kIdle),
                   std::memory_order_release);  // pairs with ring:slot
  return true;
}

/// Null: the agent comes when it comes.
Bell* map_bell(int bell) {
  struct stat status;
  if (bell < 0 || !is_sealed(bell) || read_status(bell, &status) != 0 ||
      status.st_size < kBellBytes) {
    return nullptr;
  }
  void* page = mmap(nullptr, kBellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, bell, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, kBellBytes, MADV_DONTFORK) != 0) {
    munmap(page, kBellBytes);
    return nullptr;
  }
  return static_cast<Bell*>(page);
}

/// The same socket under a high number: programs count on low ones, or close them. Lower where the
/// high ones are taken.
int move_up(int fd) {
  constexpr rlim_t kHighest = 1000;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlim_t wanted = limit.rlim_cur <= kHighest ? limit.rlim_cur / 2 : kHighest;
  for (; wanted > static_cast<rlim_t>(fd); wanted /= 2) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(wanted));
    if (moved < 0) continue;
    close(fd);
    return moved;
  }
  return fd;
}

}  // namespace

bool open_agent_ring(Process& p, const char* socket_path, int timeout_ms, const Site* call) {
  const Deadline deadline(timeout_ms);
  int fd = p.asked_socket;
  bool is_asked = fd != 0;
  p.asked_socket = 0;
  if (is_asked && !is_still_there(g_last_connection)) return false;
  if (!is_asked) {
    close_inherited();
    fd = connect_socket(socket_path, deadline);
    if (fd < 0) return false;
    if (!is_of_this_user(fd)) {
      p.no_agent = NoAgent::kOfAnotherUser;
      close(fd);
      return false;
    }
    fd = move_up(fd);
    note_connection(fd);
    is_asked = send_hello(fd, call, deadline);
  }
  if (is_asked && call != nullptr && !wait_for(fd, POLLIN, deadline)) {
    p.asked_socket = fd;
    return false;
  }
  agent::Welcome welcome = {};
  const Received received = is_asked ? receive_welcome(fd, deadline, &welcome) : Received{-1, -1};
  const bool ok = received.ring >= 0 && map_ring(p, received.ring, welcome);
  if (ok) p.bell = map_bell(received.bell);
  close_all(received);
  p.is_left_alone = welcome.header.magic == agent::kProtocolMagic &&
                    welcome.header.type == agent::MessageType::kLeftAlone;
  if (!ok) {
    close(fd);
    return false;
  }
  p.socket = fd;
  p.has_agent = true;
  return true;
}

}  // namespace aon::runtime
