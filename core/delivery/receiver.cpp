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

namespace aon::delivery {
namespace {

using cluster::FrameType;

/// Token of the leases that are kept for couriers; ends the text of their marks.
constexpr const char* kDelivered = "delivered";
constexpr int64_t kHandshakeMs = 2000;
constexpr int64_t kFarewellMs = 2000;  ///< for a courier to read why it is refused
constexpr int64_t kLookMs = 500;
constexpr int64_t kBeatMs = kLeaseBeatSeconds * 1000;
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

/// Names an agent of `node`.
std::string agent_name(const std::string& node, int32_t pid, uint64_t start_time_ticks) {
  return node + " " + std::to_string(pid) + " " + std::to_string(start_time_ticks);
}

/// Whether the lease of `node` is kept here for `agent`, who came from there.
bool is_lease_of(const LeaseOwner& held, const std::string& node, const std::string& agent) {
  return held.token == kDelivered && agent_name(node, held.pid, held.start_time_ticks) == agent;
}

/// Of the archive that is there now; inode 0: none.
struct stat ledger_of(const std::string& job_folder) {
  struct stat status {};
  if (stat((job_folder + "/aon.json").c_str(), &status) != 0) status.st_ino = 0;
  return status;
}

/// Another archive's has another time, where clocks are set not always a later one.
bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

}  // namespace

bool is_mark_of_guest(const std::string& job_folder, const cluster::NodePresence& node) {
  if (node.presence == cluster::Presence::kDone && !node.token.empty())
    return node.token.ends_with(kDelivered);
  const std::optional<LeaseOwner> lease = read_lease(cluster::agent_lease(job_folder, node.node));
  if (lease) return lease->token == kDelivered;
  const auto nodes = cluster::read_presence(job_folder);
  return std::any_of(nodes.begin(), nodes.end(), [&](const cluster::NodePresence& one) {
    return one.node == node.node && one.token.ends_with(kDelivered);
  });
}

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
  if (!status) return refuse(guest, status.error().message);
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
  const Bringer bringer{agent_name(guest.node, offer.pid, offer.start_time_ticks), guest.node,
                        offer.spool, offer.rank_count};
  if (guest.node == settings_.node) return refuse(guest, "it has the name of this node");
  if (offer.world_size != settings_.world_size)
    return refuse(guest, "it is of a launch of " + std::to_string(offer.world_size) +
                             " ranks, this one has " + std::to_string(settings_.world_size));
  const std::string lease = cluster::agent_lease(settings_.job_folder, guest.node);
  const std::optional<LeaseOwner> held = read_lease(lease);
  const std::string holder = places_.holder(bringer);
  const auto is_holders = [&](const auto& one) {
    return one.second.get() != &guest && !holder.empty() && one.second->agent == holder;
  };
  // One whose spool another agent goes on with does not come again: its lease keeps nobody away.
  const bool is_there =
      holder != bringer.agent && std::any_of(guests_.begin(), guests_.end(), [&](const auto& one) {
        return is_holders(one) && one.second->fd;
      });
  if (held && held->is_alive && (is_there || !is_lease_of(*held, guest.node, holder)))
    return refuse(guest, "another agent of node " + guest.node + " is there");
  // The connection that broke may have something left; it must not come over what comes now.
  std::erase_if(guests_, is_holders);
  Status status = cluster::make_agents_folder(settings_.job_folder);
  Result<UniqueFd> folder = status ? places_.open(bringer) : Result<UniqueFd>(status.error());
  if (folder)
    status =
        write_lease_of(lease, {guest.node, offer.pid, offer.start_time_ticks, kDelivered, true});
  if (!folder || !status) return refuse(guest, (folder ? status.error() : folder.error()).message);
  cluster::clear_done(settings_.job_folder, guest.node);
  guest.agent = bringer.agent;
  guest.folder = std::make_shared<UniqueFd>(std::move(*folder));
  // Another one each time: an archive that was begun before must not count as one that has this.
  guest.mark = bringer.agent + " " + std::to_string(++offer_count_) + " " + kDelivered;
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
  if (part.total_bytes > settings_.node_bytes || part.offset > part.total_bytes ||
      part.byte_count > part.total_bytes - part.offset)
    return false;
  const auto known = guest.file_bytes.find(name);
  const uint64_t there_bytes = known == guest.file_bytes.end() ? 0 : known->second;
  if (guest.stored_bytes - there_bytes + part.total_bytes > settings_.node_bytes)
    return refuse(guest, "it is larger than --disk allows");
  const bool goes_on = is_whole && part.offset != 0;
  if (goes_on && (guest.part_of != name || guest.part.mode != part.mode ||
                  guest.part.offset + guest.part.byte_count != part.offset))
    return false;
  if (!is_whole && part.offset != there_bytes) return false;
  if (!has_room(guest, part.byte_count))
    return refuse(guest, "no room for it in " + settings_.job_folder);
  if (!goes_on && !open_part(guest, part, name)) return refuse(guest, "cannot write " + name);
  guest.part = part;
  guest.part_of = name;
  guest.part_left = part.byte_count;
  return guest.part_left != 0 || end_part(guest);
}

bool Receiver::open_part(Guest& guest, const cluster::Part& part, const std::string& name) {
  const bool is_whole = part.mode == cluster::PartMode::kWhole;
  const std::string file = is_whole ? part_name(name) : name;
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (is_whole ? O_TRUNC : O_APPEND);
  guest.part_file.reset(openat(guest.folder->get(), file.c_str(), flags, 0600));
  struct stat status {};
  if (!guest.part_file || fstat(guest.part_file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  return is_whole || static_cast<uint64_t>(status.st_size) == part.offset;
}

/// All bytes of a frame are written.
bool Receiver::end_part(Guest& guest) {
  const uint64_t end = guest.part.offset + guest.part.byte_count;
  const bool is_whole = guest.part.mode == cluster::PartMode::kWhole;
  if (!is_whole) guest.store(guest.part_of, end);
  if (is_whole && end != guest.part.total_bytes) return true;
  const std::string name = std::exchange(guest.part_of, {});
  guest.part_file.reset();
  if (!is_whole) return true;
  guest.store(name, end);
  const int folder = guest.folder->get();
  if (renameat(folder, part_name(name).c_str(), folder, name.c_str()) == 0) return true;
  return refuse(guest, "cannot write " + name);
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

/// The courier removes its own when an archive has this: it must outlive a crash of this node.
bool Receiver::take_complete(Guest& guest) {
  if (guest.is_closed || !guest.part_of.empty()) return false;
  guest.is_closed = true;
  std::vector<std::string> files;
  for (const auto& [name, bytes] : guest.file_bytes) files.push_back(name);
  syncs_.add(guest.mark, guest.folder, std::move(files));
  return true;
}

void Receiver::take_synced() {
  for (const auto& [mark, status] : syncs_.take_done(std::chrono::milliseconds(0))) {
    for (auto& [fd, guest] : guests_) {
      if (guest->mark == mark && !guest->is_refused) deliver(*guest, status);
    }
  }
}

void Receiver::deliver(Guest& guest, Status status) {
  if (status) status = cluster::make_agents_folder(settings_.job_folder);
  guest.ledger = ledger_of(settings_.job_folder);
  if (status) status = cluster::mark_done(settings_.job_folder, guest.node, guest.mark);
  if (!status) {
    refuse(guest, status.error().message);
    return;
  }
  guest.is_complete = true;
  const std::string lease = cluster::agent_lease(settings_.job_folder, guest.node);
  const std::optional<LeaseOwner> held = read_lease(lease);
  if (held && is_lease_of(*held, guest.node, guest.agent)) unlink(lease.c_str());
}

/// Keeps the leases of couriers that are heard of; tells those whose node an archive has.
void Receiver::look_after_guests() {
  const int64_t now = now_ms();
  std::vector<int> gone;
  for (auto& [fd, guest] : guests_) {
    if (!look_after(*guest, now)) gone.push_back(fd);
  }
  for (const int fd : gone) drop(fd, "it is silent");
}

/// False: its connection is to be closed. A leaver has none that could be silent.
bool Receiver::look_after(Guest& guest, int64_t now_ms) {
  const int64_t patience_ms = guest.is_refused ? kFarewellMs
                              : guest.folder   ? kSilentMs
                                               : kHandshakeMs;
  if (!guest.fd && guest.is_refused) return false;
  if (guest.fd && now_ms - guest.heard_ms > patience_ms) {
    pollfd waiting{guest.fd.get(), POLLIN, 0};
    if (guest.is_refused || poll(&waiting, 1, 0) == 0) return false;
  }
  if (!guest.folder || guest.is_refused || guest.is_assembled) return true;
  if (guest.is_complete) {
    if (settings_.waits_for_archive &&
        cluster::is_done(settings_.job_folder, guest.node, guest.mark))
      return true;
    if (is_in_archive(guest)) return tell_assembled(guest);
    return guest.fd && refuse(guest, "it was removed before an archive had it");
  }
  if (now_ms - guest.beaten_ms >= kBeatMs) {
    touch_lease_of(cluster::agent_lease(settings_.job_folder, guest.node));
    guest.beaten_ms = now_ms;
  }
  return true;
}

/// That its mark is gone says so; but somebody may just have cleaned up. Rings become part of the
/// spool under another name.
bool Receiver::is_in_archive(const Guest& guest) const {
  struct stat status {};
  if (settings_.waits_for_archive) {
    const struct stat ledger = ledger_of(settings_.job_folder);
    if (ledger.st_ino == 0 || is_same_file(ledger, guest.ledger)) return false;
    if (settings_.drops_spool) return true;
  }
  return std::all_of(guest.file_bytes.begin(), guest.file_bytes.end(), [&](const auto& file) {
    if (is_ring_name(file.first)) return true;
    return fstatat(guest.folder->get(), file.first.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           static_cast<uint64_t>(status.st_size) == file.second;
  });
}

bool Receiver::tell_assembled(Guest& guest) {
  auto frame = cluster::make_frame<cluster::Assembled>();
  const std::string place = settings_.node + ":" + settings_.job_folder;
  place.copy(frame.place, sizeof(frame.place) - 1);
  guest.is_assembled = true;
  if (!cluster::send_frame(guest.fd.get(), frame)) return false;
  places_.tell(guest.agent);
  return true;
}

/// Says why, and waits a little for the courier to read it. Its lease runs out, so that the archive
/// names its node.
bool Receiver::refuse(Guest& guest, const std::string& reason) const {
  AON_LOG_WARNING("spool of %s is refused: %s", guest.node.c_str(), reason.c_str());
  auto frame = cluster::make_frame<cluster::Refused>();
  reason.copy(frame.reason, sizeof(frame.reason) - 1);
  guest.is_refused = true;
  guest.give_up_part();
  guest.heard_ms = now_ms();
  return cluster::send_frame(guest.fd.get(), frame);
}

void Receiver::drop(int fd, const char* why) {
  const auto found = guests_.find(fd);
  if (found == guests_.end()) return;
  Guest& guest = *found->second;
  guest.give_up_part();
  if (guest.fd && guest.is_closed && !guest.is_assembled && !guest.is_refused) {
    auto leaver = guests_.extract(found);  // all that it has is here
    leaver.mapped()->fd.reset();
    leaver.key() = --leaver_number_;  // poll() looks at none of them
    guests_.insert(std::move(leaver));
    return;
  }
  if (guest.folder && !guest.is_complete && !guest.is_refused)
    AON_LOG_WARNING("spool of %s is not complete: %s", guest.node.c_str(), why);
  const bool is_dropped =
      guest.is_assembled && settings_.waits_for_archive && settings_.drops_spool;
  if (guest.folder) places_.leave(guest.agent, is_dropped ? 0 : guest.stored_bytes);
  guests_.erase(found);
}

}  // namespace aon::delivery
