#include "core/delivery/receiver.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/cluster/handshake.h"
#include "core/cluster/presence.h"
#include "core/cluster/wire.h"
#include "core/delivery/names.h"

namespace aon::delivery {
namespace {

using cluster::FrameType;

constexpr const char* kDelivered = "delivered";  ///< token of the leases that are kept for couriers
constexpr int64_t kHandshakeMs = 2000;
constexpr int64_t kLookMs = 200;
constexpr int64_t kBeatMs = kLeaseBeatSeconds * 1000;
constexpr size_t kBufferBytes = 65536;
constexpr int kReadsPerTurn = 16;  ///< of one guest, before the others have theirs

/// The text of a field that may fill its place to the end.
template <size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

std::string part_name(const std::string& name) { return "." + name + ".part"; }

/// DIR/spool/NODE, this user's own and no link: new, or emptied when it `may_exist`.
Result<UniqueFd> open_node_folder(const std::string& job_folder, const std::string& node,
                                  bool may_exist) {
  const std::string spool = job_folder + "/spool";
  const std::string path = spool + "/" + node;
  if (mkdir(spool.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error("cannot create", spool, errno);
  if (mkdir(path.c_str(), 0700) != 0 && !(may_exist && errno == EEXIST))
    return errno_error("cannot create", path, errno);
  Result<UniqueFd> folder = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return folder;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error))
    unlinkat(folder->get(), at->path().filename().c_str(), 0);
  return folder;
}

}  // namespace

struct Receiver::Guest {
  UniqueFd fd;
  cluster::Nonce nonce{};
  cluster::FrameBuffer frame;
  int64_t heard_ms = 0;
  int64_t beaten_ms = 0;
  std::string node;  ///< empty: has not proved to be one of us
  std::string mark;  ///< of its NODE.done
  UniqueFd folder;   ///< set with its offer
  bool is_complete = false;
  bool is_assembled = false;
  std::map<std::string, uint64_t> file_bytes;  ///< of what it brought

  // The part that comes in.
  cluster::Part part{};
  std::string part_of;  ///< file name; empty: none
  uint32_t part_left = 0;
  UniqueFd part_file;

  uint64_t stored_bytes() const {
    uint64_t sum = 0;
    for (const auto& [name, bytes] : file_bytes) sum += bytes;
    return sum;
  }
};

Receiver::Receiver(std::string job_folder, std::string node, uint64_t node_bytes,
                   bool waits_for_archive)
    : job_folder_(std::move(job_folder)),
      node_(std::move(node)),
      node_bytes_(node_bytes),
      waits_for_archive_(waits_for_archive),
      token_(cluster::random_token()) {}

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
  return static_cast<uint32_t>(std::count_if(guests_.begin(), guests_.end(), [](const auto& entry) {
    return entry.second->folder && !entry.second->is_assembled;
  }));
}

uint32_t Receiver::rank_count() const {
  uint32_t sum = 0;
  for (const auto& [node, count] : ranks_) sum += count;
  return sum;
}

void Receiver::step(int timeout_ms) {
  const int64_t now = cluster::now_ms();
  if (now >= next_look_ms_) {
    look_after_guests();
    next_look_ms_ = now + kLookMs;
  }
  std::vector<pollfd> fds;
  for (const UniqueFd& listener : listeners_) fds.push_back({listener.get(), POLLIN, 0});
  for (const auto& [fd, guest] : guests_) fds.push_back({fd, POLLIN, 0});
  const auto until_look_ms = static_cast<int>(next_look_ms_ - now);
  const bool may_sleep = guests_.empty();
  const int wait_ms = may_sleep ? timeout_ms : std::min(timeout_ms, until_look_ms);
  if (poll(fds.data(), fds.size(), wait_ms) <= 0) return;
  for (size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    if (i < listeners_.size()) {
      accept_all(fds[i].fd);
    } else if (const auto found = guests_.find(fds[i].fd);
               found != guests_.end() && !receive(*found->second)) {
      drop(fds[i].fd, "the connection ended");
    }
  }
}

void Receiver::accept_all(int listener) {
  for (;;) {
    UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      constexpr int kNoDescriptorMs = 100;
      // The one that waits stays there: without a pause poll() would return for it at once.
      if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, kNoDescriptorMs);
      return;
    }
    if (guests_.size() >= kMaxGuests) continue;
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::optional<cluster::Nonce> nonce = cluster::send_challenge(fd.get());
    if (!nonce) continue;
    auto guest = std::make_unique<Guest>();
    guest->nonce = *nonce;
    guest->heard_ms = cluster::now_ms();
    const int number = fd.get();
    guest->fd = std::move(fd);
    guests_[number] = std::move(guest);
  }
}

/// Takes what has come. False: the connection is over.
bool Receiver::receive(Guest& guest) {
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    if (guest.part_left != 0) {
      if (!receive_payload(guest)) return false;
      if (guest.part_left != 0) return true;
      continue;
    }
    const ssize_t got = recv(guest.fd.get(), guest.frame.space(), guest.frame.wanted(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0 || !guest.frame.add(static_cast<size_t>(got))) return false;
    if (!guest.frame.is_complete()) continue;
    guest.heard_ms = cluster::now_ms();
    if (!handle(guest)) return false;
  }
  return true;
}

bool Receiver::receive_payload(Guest& guest) {
  uint8_t buffer[kBufferBytes];
  for (int turn = 0; turn < kReadsPerTurn && guest.part_left != 0; ++turn) {
    const size_t wanted = std::min<size_t>(sizeof(buffer), guest.part_left);
    const ssize_t got = recv(guest.fd.get(), buffer, wanted, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    guest.heard_ms = cluster::now_ms();
    const Status status = write_all(guest.part_file.get(), buffer, static_cast<size_t>(got));
    if (!status) {
      AON_LOG_WARNING("spool of %s: %s", guest.node.c_str(), status.error().message.c_str());
      return false;
    }
    guest.part_left -= static_cast<uint32_t>(got);
  }
  return guest.part_left != 0 || end_part(guest);
}

bool Receiver::handle(Guest& guest) {
  const FrameType type = guest.frame.type();
  if (guest.node.empty()) {
    if (type != FrameType::kAnswer) return false;
    const std::optional<std::string> node = cluster::welcome_child(
        guest.fd.get(), token_, guest.nonce, guest.frame.take<cluster::Answer>());
    if (!node || !is_node_name(*node) || *node == node_) return false;
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

/// One courier per node, who brings all of it. The same agent may come again, when its connection
/// broke; what another one brought, or recorded here, is left alone.
bool Receiver::take_offer(Guest& guest, const cluster::Offer& offer) {
  const LeaseOwner owner{guest.node, offer.pid, offer.start_time_ticks, kDelivered, true};
  const std::string lease = cluster::agent_lease(job_folder_, guest.node);
  const std::optional<LeaseOwner> held = read_lease(lease);
  const bool is_same = held && held->token == kDelivered && held->pid == owner.pid &&
                       held->start_time_ticks == owner.start_time_ticks;
  for (auto& [fd, other] : guests_) {
    if (is_same && other.get() != &guest && other->node == guest.node) shutdown(fd, SHUT_RDWR);
  }
  Result<UniqueFd> folder = open_node_folder(job_folder_, guest.node, is_same);
  Status status = folder ? write_lease_of(lease, owner) : Status(folder.error());
  if (!status) {
    AON_LOG_WARNING("spool of %s: %s", guest.node.c_str(), status.error().message.c_str());
    return false;
  }
  cluster::clear_done(job_folder_, guest.node);
  guest.folder = std::move(*folder);
  guest.mark = guest.node + " " + std::to_string(offer.pid) + " " +
               std::to_string(offer.start_time_ticks) + " " + kDelivered;
  guest.beaten_ms = cluster::now_ms();
  ranks_[guest.node] = offer.rank_count;
  return true;
}

bool Receiver::take_part(Guest& guest, const cluster::Part& part) {
  const std::string name = text_of(part.name);
  const bool is_whole = part.mode == cluster::PartMode::kWhole;
  if (guest.is_complete || !is_file_name(name) || part.byte_count > kMaxPartBytes) return false;
  if (!is_whole && part.mode != cluster::PartMode::kAppend) return false;
  if (part.total_bytes > node_bytes_ || part.offset > part.total_bytes ||
      part.byte_count > part.total_bytes - part.offset)
    return false;
  const auto known = guest.file_bytes.find(name);
  const uint64_t there_bytes = known == guest.file_bytes.end() ? 0 : known->second;
  if (guest.stored_bytes() - there_bytes + part.total_bytes > node_bytes_) {
    AON_LOG_WARNING("spool of %s: more than %llu bytes, as --disk says", guest.node.c_str(),
                    static_cast<unsigned long long>(node_bytes_));
    return false;
  }
  const bool goes_on = is_whole && part.offset != 0;
  if (goes_on && (guest.part_of != name || guest.part.mode != part.mode ||
                  guest.part.offset + guest.part.byte_count != part.offset))
    return false;
  if (!is_whole && part.offset != there_bytes) return false;
  if (!goes_on) {
    const std::string file = is_whole ? part_name(name) : name;
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (is_whole ? O_TRUNC : O_APPEND);
    guest.part_file.reset(openat(guest.folder.get(), file.c_str(), flags, 0600));
    struct stat status {};
    const bool is_file =
        guest.part_file && fstat(guest.part_file.get(), &status) == 0 && S_ISREG(status.st_mode);
    if (!is_file || (!is_whole && static_cast<uint64_t>(status.st_size) != part.offset)) {
      AON_LOG_WARNING("spool of %s: cannot write %s", guest.node.c_str(), name.c_str());
      return false;
    }
  }
  guest.part = part;
  guest.part_of = name;
  guest.part_left = part.byte_count;
  return guest.part_left != 0 || end_part(guest);
}

/// All bytes of a frame are written.
bool Receiver::end_part(Guest& guest) {
  const uint64_t end = guest.part.offset + guest.part.byte_count;
  const bool is_whole = guest.part.mode == cluster::PartMode::kWhole;
  if (!is_whole) guest.file_bytes[guest.part_of] = end;
  if (is_whole && end != guest.part.total_bytes) return true;
  const std::string name = std::exchange(guest.part_of, {});
  guest.part_file.reset();
  if (!is_whole) return true;
  guest.file_bytes[name] = end;
  return renameat(guest.folder.get(), part_name(name).c_str(), guest.folder.get(), name.c_str()) ==
         0;
}

/// A segment that went to keep --disk.
bool Receiver::take_gone(Guest& guest, const cluster::Gone& gone) {
  const std::string name = text_of(gone.name);
  if (guest.is_complete || !is_file_name(name)) return false;
  const auto known = guest.file_bytes.find(name);
  if (known == guest.file_bytes.end()) return true;
  unlinkat(guest.folder.get(), name.c_str(), 0);
  guest.file_bytes.erase(known);
  return true;
}

bool Receiver::take_complete(Guest& guest) {
  if (guest.is_complete || !guest.part_of.empty()) return false;
  Status status = cluster::make_agents_folder(job_folder_);
  if (status) status = cluster::mark_done(job_folder_, guest.node, guest.mark);
  if (!status) {
    AON_LOG_WARNING("spool of %s: %s", guest.node.c_str(), status.error().message.c_str());
    return false;
  }
  unlink(cluster::agent_lease(job_folder_, guest.node).c_str());
  guest.is_complete = true;
  return true;
}

/// Keeps the leases of couriers that are heard of; tells those whose node an archive has.
void Receiver::look_after_guests() {
  const int64_t now = cluster::now_ms();
  std::vector<std::pair<int, const char*>> gone;
  for (auto& [fd, guest] : guests_) {
    const bool is_newcomer = !guest->folder;
    if (now - guest->heard_ms > (is_newcomer ? kHandshakeMs : kSilentMs)) {
      gone.emplace_back(fd, "it is silent");
    } else if (guest->is_assembled || is_newcomer) {
      continue;
    } else if (guest->is_complete) {
      if (waits_for_archive_ && cluster::is_done(job_folder_, guest->node, guest->mark)) continue;
      guest->is_assembled = true;
      if (!tell_assembled(fd)) gone.emplace_back(fd, "the connection ended");
    } else if (now - guest->beaten_ms >= kBeatMs) {
      touch_lease_of(cluster::agent_lease(job_folder_, guest->node));
      guest->beaten_ms = now;
    }
  }
  for (const auto& [fd, why] : gone) drop(fd, why);
}

bool Receiver::tell_assembled(int fd) const {
  auto frame = cluster::make_frame<cluster::Assembled>();
  const std::string place = node_ + ":" + job_folder_;
  place.copy(frame.place, sizeof(frame.place) - 1);
  return cluster::send_frame(fd, frame);
}

void Receiver::drop(int fd, const char* why) {
  const auto found = guests_.find(fd);
  if (found == guests_.end()) return;
  const Guest& guest = *found->second;
  if (guest.folder && !guest.is_complete)
    AON_LOG_WARNING("spool of %s is not complete: %s", guest.node.c_str(), why);
  guests_.erase(found);
}

}  // namespace aon::delivery
