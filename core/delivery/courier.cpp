#include "core/delivery/courier.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/cluster/handshake.h"
#include "core/cluster/wire.h"
#include "core/delivery/names.h"
#include "core/delivery/receiver.h"
#include "core/spool/files.h"

namespace aon::delivery {
namespace {

namespace fs = std::filesystem;

constexpr int kConnectMs = 2000;
constexpr int kHandshakeMs = 2000;
constexpr int kSendSeconds = 20;  ///< a receiver that takes nothing for so long is lost
constexpr int64_t kAppendMs = 10'000;
constexpr size_t kBufferBytes = 256u << 10;

/// "fallback-PID-START.ring" of a process that is there.
bool is_live_ring(const std::string& name) {
  int32_t pid = 0;
  unsigned long long start = 0;
  return sscanf(name.c_str(), "fallback-%d-%llu.ring", &pid, &start) == 2 &&
         process_start_time_ticks(pid) == start;
}

/// Names of the files to send, and of these the ones that do not change any more: all segments but
/// the last of each series.
struct Listing {
  std::set<std::string> all;
  std::set<std::string> closed;
};

Result<Listing> list_files(const std::string& folder) {
  Listing listing;
  std::error_code error;
  std::map<std::pair<uint32_t, std::optional<uint16_t>>, uint32_t> last;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!is_file_name(name) || is_live_ring(name)) continue;
    listing.all.insert(name);
    const auto segment = spool::parse_segment_file_name(name);
    if (!segment) continue;
    uint32_t& number = last[{segment->process, segment->slot}];
    number = std::max(number, segment->segment);
  }
  if (error) return errno_error("cannot read", folder, error.value());
  for (const std::string& name : listing.all) {
    const auto segment = spool::parse_segment_file_name(name);
    if (segment && segment->segment != last[{segment->process, segment->slot}])
      listing.closed.insert(name);
  }
  return listing;
}

int64_t changed_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec;
}

/// Another one where a folder of the same name was removed and made anew; 0: not known.
uint32_t number_of_spool(const std::string& folder) {
  struct statx about {};
  if (statx(AT_FDCWD, folder.c_str(), 0, STATX_INO | STATX_BTIME, &about) != 0) return 0;
  const uint64_t device = uint64_t{about.stx_dev_major} << 32 | about.stx_dev_minor;
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const uint64_t part :
       {device, uint64_t{about.stx_ino}, static_cast<uint64_t>(about.stx_btime.tv_sec),
        uint64_t{about.stx_btime.tv_nsec}})
    hash = (hash ^ part) * 0x100000001b3u;
  return std::max(static_cast<uint32_t>(hash ^ hash >> 32), 1u);
}

template <size_t N>
void put_text(const std::string& text, char (&field)[N]) {
  text.copy(field, N - 1);
}

}  // namespace

Status Courier::lose(const std::string& what) {
  socket_.reset();
  sent_.clear();
  return Error{Code::kIo, what};
}

Status Courier::connect(const cluster::AgentAddress& address) {
  refusal_.clear();
  Status status = Error{Code::kUnavailable, "rank 0's node has no address"};
  for (const cluster::Endpoint& endpoint : address.endpoints) {
    Result<UniqueFd> fd = cluster::connect_to(endpoint, kConnectMs);
    if (!fd) {
      status = fd.error();
      continue;
    }
    reached_ms_ = now_ms();
    const timeval longest{kSendSeconds, 0};
    setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest));
    const int64_t deadline_ms = now_ms() + kHandshakeMs;
    if (!cluster::shake_hands(fd->get(), address.token, sender_.node, deadline_ms)) {
      status =
          Error{Code::kUnavailable, endpoint.host + " does not answer, or does not know the token"};
      continue;
    }
    socket_ = std::move(*fd);
    auto offer = cluster::make_frame<cluster::Offer>();
    offer.pid = sender_.pid;
    offer.start_time_ticks = sender_.start_time_ticks;
    offer.rank_count = sender_.rank_count;
    offer.world_size = sender_.world_size;
    offer.spool = number_of_spool(sender_.folder);
    return send_all(&offer, sizeof(offer));
  }
  return status;
}

Status Courier::send_all(const void* bytes, size_t byte_count) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (byte_count != 0) {
    const ssize_t sent = send(socket_.get(), at, byte_count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      const Status status = take_notice(0);
      return status ? lose("rank 0's node does not take the spool any more") : status;
    }
    at += sent;
    byte_count -= static_cast<size_t>(sent);
  }
  return {};
}

Status Courier::beat() {
  const auto frame = cluster::make_frame<cluster::Beat>();
  const Status status = take_notice(0);
  return status ? send_all(&frame, sizeof(frame)) : status;
}

Status Courier::send_new() { return send_files(false); }

Status Courier::send_rest() {
  Status status = send_files(true);
  if (!status) return status;
  const auto frame = cluster::make_frame<cluster::Complete>();
  return send_all(&frame, sizeof(frame));
}

Status Courier::send_files(bool is_last) {
  const Result<Listing> listing = list_files(sender_.folder);
  if (!listing) return lose(listing.error().message);
  const bool is_append_due = now_ms() >= next_append_ms_;
  if (is_append_due) next_append_ms_ = now_ms() + kAppendMs;
  for (auto one = sent_.begin(); one != sent_.end();) {
    if (listing->all.count(one->first) != 0) {
      ++one;
      continue;
    }
    auto gone = cluster::make_frame<cluster::Gone>();
    put_text(one->first, gone.name);
    one = sent_.erase(one);
    if (Status status = send_all(&gone, sizeof(gone)); !status) return status;
  }
  for (const std::string& name : listing->all) {
    const bool is_closed = listing->closed.count(name) != 0;
    // Records say nothing without their definitions.
    const bool is_due = is_append_due || name == spool::kDefinitionsFile;
    if (!is_last && !is_closed && !is_due) continue;
    if (const auto found = sent_.find(name);
        found != sent_.end() && found->second.is_final && is_unchanged(name, found->second))
      continue;
    // What was appended while it grew may have been cut since.
    const bool is_final = is_closed || is_last;
    Status status = is_link_name(name) ? send_link(name) : send_file(name, is_final, is_final);
    if (!status) return status;
  }
  return {};
}

/// As an empty file: whoever counts looks at the name.
Status Courier::send_link(const std::string& name) {
  struct stat status {};
  if (sent_.count(name) != 0 || lstat((sender_.folder + "/" + name).c_str(), &status) != 0)
    return {};
  if (Status sent = send_bytes(-1, name, 0, 0, true); !sent) return sent;
  sent_[name] = {static_cast<uint64_t>(status.st_size), status.st_ino, changed_ns(status), true};
  return {};
}

/// A file that went meanwhile is told of the next time.
Status Courier::send_file(const std::string& name, bool is_final, bool from_start) {
  const Result<UniqueFd> file = open_file(sender_.folder + "/" + name, O_RDONLY | O_NOFOLLOW);
  if (!file) return file.error().code == Code::kNotFound ? Status() : lose(file.error().message);
  struct stat status {};
  if (fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto total_bytes = static_cast<uint64_t>(status.st_size);
  const auto found = sent_.find(name);
  const bool is_whole = from_start || found == sent_.end() ||
                        found->second.inode != status.st_ino || found->second.bytes > total_bytes;
  const uint64_t offset = is_whole ? 0 : found->second.bytes;
  if (!is_whole && offset == total_bytes) return {};
  if (Status sent = send_bytes(file->get(), name, offset, total_bytes, is_whole); !sent)
    return sent;
  sent_[name] = {total_bytes, status.st_ino, changed_ns(status), is_final};
  return {};
}

Status Courier::send_bytes(int file, const std::string& name, uint64_t offset, uint64_t total_bytes,
                           bool is_whole) {
  std::vector<uint8_t> buffer(kBufferBytes);
  static_assert(kBufferBytes <= kMaxPartBytes);
  do {
    const size_t wanted = std::min<uint64_t>(buffer.size(), total_bytes - offset);
    const Result<size_t> got = read_at(file, buffer.data(), wanted, offset);
    if (!got) return lose(got.error().message);
    // It was cut while it was read: zeros are no block, and what follows comes at the end.
    std::fill(buffer.begin() + static_cast<ptrdiff_t>(*got),
              buffer.begin() + static_cast<ptrdiff_t>(wanted), uint8_t{0});
    auto part = cluster::make_frame<cluster::Part>();
    put_text(name, part.name);
    part.mode = is_whole ? cluster::PartMode::kWhole : cluster::PartMode::kAppend;
    part.byte_count = static_cast<uint32_t>(wanted);
    part.offset = offset;
    part.total_bytes = total_bytes;
    Status status = send_all(&part, sizeof(part));
    if (status) status = send_all(buffer.data(), wanted);
    if (!status) return status;
    offset += wanted;
  } while (offset != total_bytes);
  return {};
}

/// The receiver only speaks when it is over, one way or the other.
Status Courier::take_notice(int timeout_ms) {
  pollfd readable{socket_.get(), POLLIN, 0};
  if (poll(&readable, 1, timeout_ms) <= 0) return {};
  cluster::FrameBuffer frame;
  if (!cluster::receive_frame(socket_.get(), now_ms() + kHandshakeMs, &frame))
    return lose("rank 0's node has left");
  if (frame.type() == cluster::FrameType::kAssembled) {
    const auto assembled = frame.take<cluster::Assembled>();
    place_.assign(assembled.place, strnlen(assembled.place, sizeof(assembled.place)));
    return {};
  }
  if (frame.type() == cluster::FrameType::kAssembling) {
    assembling_ms_ = now_ms();
    return {};
  }
  if (frame.type() != cluster::FrameType::kRefused) return lose("rank 0's node talks nonsense");
  const auto refused = frame.take<cluster::Refused>();
  refusal_.assign(refused.reason, strnlen(refused.reason, sizeof(refused.reason)));
  again_ = refused.again;
  return lose("rank 0's node refuses it: " + refusal_);
}

Result<std::string> Courier::wait_assembled(int timeout_ms) {
  // A beat may have read it, and the receiver be gone since.
  const Status status = place_.empty() ? take_notice(timeout_ms) : Status();
  if (!status) return status.error();
  return place_;
}

void Courier::remove_sent() {
  for (const auto& [name, sent] : sent_) {
    if (is_unchanged(name, sent)) unlink((sender_.folder + "/" + name).c_str());
  }
}

bool Courier::is_unchanged(const std::string& name, const Sent& sent) const {
  struct stat status {};
  return lstat((sender_.folder + "/" + name).c_str(), &status) == 0 &&
         status.st_ino == sent.inode && static_cast<uint64_t>(status.st_size) == sent.bytes &&
         changed_ns(status) == sent.changed_ns;
}

}  // namespace aon::delivery
