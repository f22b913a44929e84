#include "core/delivery/receiver.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/cluster/handshake.h"
#include "core/cluster/newcomers.h"
#include "core/cluster/wire.h"
#include "core/delivery/guest.h"
#include "core/delivery/names.h"
#include "core/spool/files.h"

namespace aon::delivery {
namespace {

using cluster::Again;
using cluster::FrameType;

constexpr int64_t kLookMs = 500;
constexpr int kSyncStepMs = 20;  ///< while files are synced
constexpr size_t kBufferBytes = 65536;
constexpr int kMostAccepted = 128;  ///< in a turn
constexpr int kNoDescriptorMs = 100;
constexpr int kReadsPerTurn = 8;       ///< of one guest, before the others have theirs
constexpr uint64_t kSparedShare = 10;  ///< a tenth of the file system stays free

/// The text of a field that may fill its place to the end.
template <size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

}  // namespace

Receiver::Receiver(ReceiverSettings settings)
    : settings_(std::move(settings)),
      token_(cluster::random_token()),
      places_(settings_.job_folder + "/spool") {}

Receiver::~Receiver() = default;

Result<cluster::AgentAddress> Receiver::start(const std::vector<std::string>& hosts) {
  cluster::AgentAddress address{token_, {}};
  for (const std::string& host : hosts) {
    uint16_t port = 0;
    Result<UniqueFd> listener = cluster::listen_on(host, &port);
    if (!listener) continue;
    listeners_.push_back(std::move(*listener));
    address.endpoints.push_back({host, port});
  }
  if (address.endpoints.empty())
    return Error{Code::kUnavailable, "no address of this node can be listened on"};
  return address;
}

uint32_t Receiver::guest_count() const {
  return static_cast<uint32_t>(std::count_if(guests_.begin(), guests_.end(), [](const auto& one) {
    return one.second->folder && !one.second->is_assembled && !one.second->is_refused;
  }));
}

uint32_t Receiver::open_count() const {
  return static_cast<uint32_t>(std::count_if(guests_.begin(), guests_.end(), [](const auto& one) {
    return one.second->folder && !one.second->is_complete && !one.second->is_refused;
  }));
}

void Receiver::step(int timeout_ms, int wake_fd) {
  std::vector<pollfd> fds{{wake_fd, POLLIN, 0}};
  for (const UniqueFd& listener : listeners_) fds.push_back({listener.get(), POLLIN, 0});
  const size_t first_guest = fds.size();
  for (const auto& [fd, guest] : guests_) fds.push_back({fd, POLLIN, 0});
  const auto until_look_ms = static_cast<int>(std::max<int64_t>(0, next_look_ms_ - now_ms()));
  const int patience_ms = syncs_.are_any() ? std::min(timeout_ms, kSyncStepMs) : timeout_ms;
  const int wait_ms = guests_.empty() ? patience_ms : std::min(patience_ms, until_look_ms);
  if (poll(fds.data(), fds.size(), wait_ms) > 0) {
    // Whoever comes now takes no place from one whose answer has come.
    for (size_t i = fds.size(); i-- > 1;) {
      if (fds[i].revents == 0) continue;
      if (i < first_guest) {
        accept_all(fds[i].fd);
      } else if (const auto found = guests_.find(fds[i].fd);
                 found != guests_.end() && !receive(*found->second)) {
        drop(fds[i].fd, "the connection ended");
      }
    }
  }
  take_synced();
  // Only now: what was waiting here while we worked is no silence.
  if (now_ms() >= next_look_ms_) {
    look_after_guests();
    next_look_ms_ = now_ms() + kLookMs;
  }
}

/// Not all at once: who connects as fast as we accept must not keep us from the others.
void Receiver::accept_all(int listener) {
  for (int i = 0; i < kMostAccepted; ++i) {
    UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE) {
        make_room_for_newcomer();
        poll(nullptr, 0, kNoDescriptorMs);  // the one that waits stays there
      }
      return;
    }
    make_room_for_newcomer();
    if (guests_.size() >= kMaxGuests) continue;
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::optional<cluster::Nonce> nonce = cluster::send_challenge(fd.get());
    if (!nonce) continue;
    auto guest = std::make_unique<Guest>();
    guest->nonce = *nonce;
    guest->heard_ms = now_ms();
    const int number = fd.get();
    guest->fd = std::move(fd);
    guests_[number] = std::move(guest);
  }
}

void Receiver::make_room_for_newcomer() {
  const auto leaver = cluster::newcomer_to_drop(guests_, [](const std::unique_ptr<Guest>& guest) {
    return guest->node.empty() ? std::optional<int64_t>(guest->heard_ms) : std::nullopt;
  });
  if (leaver != guests_.end()) guests_.erase(leaver);
}

/// Takes what has come. False: the connection is over.
bool Receiver::receive(Guest& guest) {
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    if (guest.is_refused) {
      uint8_t ignored[kBufferBytes];
      const ssize_t got = recv(guest.fd.get(), ignored, sizeof(ignored), 0);
      if (got > 0) continue;
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (guest.part_left != 0) {
      if (!receive_payload(guest)) return false;
      if (guest.part_left != 0) return true;
      continue;
    }
    const ssize_t got = recv(guest.fd.get(), guest.frame.space(), guest.frame.wanted(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0 || !guest.frame.add(static_cast<size_t>(got))) return false;
    if (!guest.frame.is_complete()) continue;
    guest.heard_ms = now_ms();
    if (!handle(guest)) return false;
  }
  return true;
}

bool Receiver::receive_payload(Guest& guest) {
  uint8_t buffer[kBufferBytes];
  const size_t wanted = std::min<size_t>(sizeof(buffer), guest.part_left);
  const ssize_t got = recv(guest.fd.get(), buffer, wanted, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  guest.heard_ms = now_ms();
  const Status status = write_all(guest.part_file.get(), buffer, static_cast<size_t>(got));
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  if (!status)
    return refuse(guest, status.error().message, is_full ? Again::kWhenDone : Again::kSoon);
  guest.part_left -= static_cast<uint32_t>(got);
  return guest.part_left != 0 || end_part(guest);
}

bool Receiver::handle(Guest& guest) {
  const FrameType type = guest.frame.type();
  if (guest.node.empty()) {
    if (type != FrameType::kAnswer) return false;
    const std::optional<std::string> node = cluster::welcome_child(
        guest.fd.get(), token_, guest.nonce, guest.frame.take<cluster::Answer>());
    if (!node || !is_node_name(*node)) return false;
    guest.node = *node;
    return true;
  }
  if (!guest.folder)
    return type == FrameType::kOffer && take_offer(guest, guest.frame.take<cluster::Offer>());
  switch (type) {
    case FrameType::kPart:
      return take_part(guest, guest.frame.take<cluster::Part>());
    case FrameType::kGone:
      return take_gone(guest, guest.frame.take<cluster::Gone>());
    case FrameType::kBeat:
      static_cast<void>(guest.frame.take<cluster::Beat>());
      return true;
    case FrameType::kComplete:
      static_cast<void>(guest.frame.take<cluster::Complete>());
      return take_complete(guest);
    default:
      return false;
  }
}

bool Receiver::take_offer(Guest& guest, const cluster::Offer& offer) {
  const LeaseOwner owner{guest.node, offer.pid, offer.start_time_ticks, {}, true};
  const Bringer bringer{Marks::agent_name(owner), guest.node, offer.spool, offer.rank_count};
  if (guest.node == settings_.node)
    return refuse(guest, "it has the name of this node", Again::kNever);
  if (offer.world_size != settings_.world_size)
    return refuse(guest,
                  "it is of a launch of " + std::to_string(offer.world_size) +
                      " ranks, this one has " + std::to_string(settings_.world_size),
                  Again::kNever);
  // Another one each time: an archive that was begun before must not count as one that has this.
  Marks marks(settings_.job_folder, owner, ++offer_count_);
  const std::string holder = places_.holder(bringer);
  const auto is_holders = [&](const auto& one) {
    return one.second.get() != &guest && !holder.empty() && one.second->agent == holder;
  };
  // One whose spool another agent goes on with does not come again: its lease keeps nobody away.
  const bool is_there =
      holder != bringer.agent && std::any_of(guests_.begin(), guests_.end(), [&](const auto& one) {
        return is_holders(one) && one.second->fd;
      });
  const std::optional<LeaseOwner> held = marks.held();
  if (held && held->is_alive && (is_there || !Marks::is_kept_for(*held, guest.node, holder)))
    return refuse(guest, "another agent of node " + guest.node + " is there", Again::kSoon);
  Status status = cluster::make_agents_folder(settings_.job_folder);
  for (const auto& [fd, one] : guests_) {
    if (status && one->marks && one->node == guest.node) status = one->marks->give_way();
  }
  if (status) status = marks.take_lease();
  if (!status) return refuse(guest, status.error());
  guest.marks = std::move(marks);
  // The connection that broke may have something left; it must not come over what comes now. Its
  // mark goes only when there is a lease, which names the node if this does not come either.
  std::erase_if(guests_, [&](const auto& one) {
    if (!is_holders(one)) return false;
    if (one.second->marks) one.second->marks->withdraw();
    return true;
  });
  Result<UniqueFd> folder = places_.open(bringer);
  if (!folder) return refuse(guest, folder.error());
  guest.agent = bringer.agent;
  guest.folder = std::make_shared<UniqueFd>(std::move(*folder));
  guest.beaten_ms = now_ms();
  return true;
}

/// A tenth of the file system stays free. Memory (tmpfs) is not for the spools of others: of all
/// together as much as one node may use.
bool Receiver::has_room(const Guest& guest, uint64_t more_bytes) const {
  struct statfs status {};
  if (fstatfs(guest.folder->get(), &status) != 0) return false;
  const auto block_bytes = static_cast<uint64_t>(status.f_bsize);
  const uint64_t free_bytes = status.f_bavail * block_bytes;
  if (free_bytes < status.f_blocks * block_bytes / kSparedShare + more_bytes) return false;
  if (status.f_type != TMPFS_MAGIC) return true;
  uint64_t sum = places_.left_bytes() + more_bytes;
  for (const auto& [fd, one] : guests_) sum += one->stored_bytes + one->begun_bytes();
  return sum <= settings_.node_bytes;
}

bool Receiver::take_part(Guest& guest, const cluster::Part& part) {
  const std::string name = text_of(part.name);
  const bool is_whole = part.mode == cluster::PartMode::kWhole;
  if (guest.is_closed || !is_file_name(name) || part.byte_count > kMaxPartBytes) return false;
  if (!is_whole && part.mode != cluster::PartMode::kAppend) return false;
  if (part.offset > part.total_bytes || part.byte_count > part.total_bytes - part.offset)
    return false;
  const auto known = guest.file_bytes.find(name);
  const uint64_t there_bytes = known == guest.file_bytes.end() ? 0 : known->second;
  if (part.total_bytes > settings_.node_bytes)
    return refuse(guest,
                  name + " has " + std::to_string(part.total_bytes) + " bytes, --disk allows " +
                      std::to_string(settings_.node_bytes) + " of a node: give it more",
                  Again::kNever);
  if (guest.stored_bytes - there_bytes > settings_.node_bytes - part.total_bytes)
    return refuse(guest, "it is larger than --disk allows", Again::kWhenDone);
  const bool goes_on = is_whole && part.offset != 0;
  if (goes_on && (guest.part_of != name || guest.part.mode != part.mode ||
                  guest.part.offset + guest.part.byte_count != part.offset))
    return false;
  if (!is_whole && part.offset != there_bytes) return false;
  if (!has_room(guest, part.byte_count))
    return refuse(guest, "no room for it in " + settings_.job_folder, Again::kWhenDone);
  if (!goes_on) {
    if (Status status = open_part(guest, part, name); !status) return refuse(guest, status.error());
  }
  guest.part = part;
  guest.part_of = name;
  guest.part_left = part.byte_count;
  return guest.part_left != 0 || end_part(guest);
}

Status Receiver::open_part(Guest& guest, const cluster::Part& part, const std::string& name) {
  const bool is_whole = part.mode == cluster::PartMode::kWhole;
  const std::string file = is_whole ? part_name(name) : name;
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (is_whole ? O_TRUNC : O_APPEND);
  guest.part_file.reset(openat(guest.folder->get(), file.c_str(), flags, 0600));
  struct stat status {};
  if (!guest.part_file || fstat(guest.part_file.get(), &status) != 0)
    return errno_error("cannot write", name, errno);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, "cannot write " + name};
  // Cut or removed by somebody: whole it can be brought.
  if (!is_whole && static_cast<uint64_t>(status.st_size) != part.offset)
    return Error{Code::kIo, name + " is not as it was brought"};
  return {};
}

/// Whoever joins what lies on its node with this knows that it is the same.
Status Receiver::leave_origin(Guest& guest) {
  if (!guest.file_bytes.empty()) return {};
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(openat(guest.folder->get(), spool::kOriginFile, flags, 0600));
  if (!file) return errno_error("cannot write", spool::kOriginFile, errno);
  return write_all(file.get(), spool::kBroughtOrigin, strlen(spool::kBroughtOrigin));
}

/// All bytes of a frame are written.
bool Receiver::end_part(Guest& guest) {
  const uint64_t end = guest.part.offset + guest.part.byte_count;
  const bool is_whole = guest.part.mode == cluster::PartMode::kWhole;
  if (is_whole && end != guest.part.total_bytes) return true;
  if (Status status = leave_origin(guest); !status) return refuse(guest, status.error());
  if (!is_whole) guest.store(guest.part_of, end);
  const std::string name = std::exchange(guest.part_of, {});
  guest.part_file.reset();
  if (!is_whole) return true;
  guest.store(name, end);
  const int folder = guest.folder->get();
  if (renameat(folder, part_name(name).c_str(), folder, name.c_str()) == 0) return true;
  return refuse(guest, errno_error("cannot write", name, errno));
}

/// A segment that went to keep --disk.
bool Receiver::take_gone(Guest& guest, const cluster::Gone& gone) {
  const std::string name = text_of(gone.name);
  if (guest.is_closed || !is_file_name(name)) return false;
  const auto known = guest.file_bytes.find(name);
  if (known == guest.file_bytes.end()) return true;
  guest.stored_bytes -= known->second;
  guest.file_bytes.erase(known);
  unlinkat(guest.folder->get(), name.c_str(), 0);
  return true;
}

}  // namespace aon::delivery
