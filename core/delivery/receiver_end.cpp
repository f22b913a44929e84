// Of a courier that has said all it had to say, and of those that go.
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/cluster/wire.h"
#include "core/delivery/guest.h"
#include "core/delivery/names.h"
#include "core/delivery/receiver.h"

namespace aon::delivery {
namespace {

using cluster::Again;

constexpr int64_t kHandshakeMs = 2000;
constexpr int64_t kFarewellMs = 2000;  ///< for a courier to read why it is refused
constexpr int64_t kBeatMs = kLeaseBeatSeconds * 1000;

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

/// What the file system has not now it may have later: descriptors, memory, a folder that goes with
/// an archive. Not so what is not allowed, or is of another kind.
Again again_after(const Error& error) {
  const bool may_pass = error.code == Code::kIo || error.code == Code::kNotFound;
  return may_pass ? Again::kSoon : Again::kNever;
}

}  // namespace

/// The courier removes its own when an archive has this: it must outlive a crash of this node.
bool Receiver::take_complete(Guest& guest) {
  if (guest.is_closed || !guest.part_of.empty()) return false;
  guest.is_closed = true;
  guest.closed_ms = now_ms();
  std::vector<std::string> files;
  for (const auto& [name, bytes] : guest.file_bytes) files.push_back(name);
  syncs_.add(guest.marks->text(), guest.folder, std::move(files));
  return true;
}

void Receiver::take_synced() {
  for (const auto& [mark, status] : syncs_.take_done(std::chrono::milliseconds(0))) {
    for (auto& [fd, guest] : guests_) {
      if (!guest->marks || guest->marks->text() != mark || guest->is_refused) continue;
      guest->is_synced = static_cast<bool>(status);
      if (status) {
        deliver(*guest);
      } else {
        refuse(*guest, status.error());
      }
    }
  }
}

/// Where its mark cannot be made for want of something, it is tried again at the next look: all of
/// it is here.
void Receiver::deliver(Guest& guest) {
  guest.ledger = ledger_of(settings_.job_folder);
  const Status status = guest.marks->mark_done();
  guest.is_complete = static_cast<bool>(status);
  if (!status && again_after(status.error()) == Again::kNever) refuse(guest, status.error());
}

/// Keeps the leases of couriers that are heard of; tells those whose node an archive has.
void Receiver::look_after_guests() {
  const int64_t now = now_ms();
  std::vector<int> gone;
  for (auto& [fd, guest] : guests_) {
    if (!look_after(*guest, now)) gone.push_back(fd);
  }
  for (const int fd : gone) drop(fd, "it is silent");
  tell_assembling(now);
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
  if (guest.is_synced && !guest.is_complete) deliver(guest);
  if (guest.is_complete) return look_after_complete(guest);
  if (guest.is_closed && now_ms - guest.closed_ms > settings_.longest_sync_ms)
    return refuse(guest,
                  settings_.job_folder + " does not take it: its file system did not sync it in " +
                      std::to_string(settings_.longest_sync_ms / 1000) + " s",
                  Again::kNever) &&
           guest.fd;
  if (now_ms - guest.beaten_ms >= kBeatMs) {
    guest.marks->beat();
    guest.beaten_ms = now_ms;
  }
  return true;
}

bool Receiver::look_after_complete(Guest& guest) {
  guest.marks->release_lease();
  if (settings_.waits_for_archive && guest.marks->is_done()) return true;
  if (is_in_archive(guest)) return tell_assembled(guest);
  return guest.fd && refuse(guest, "it was removed before an archive had it", Again::kNever);
}

/// Who waits for an archive waits longer where one is made.
void Receiver::tell_assembling(int64_t now_ms) {
  const auto waits = [](const auto& one) {
    const Guest& guest = *one.second;
    return guest.fd && guest.is_complete && !guest.is_assembled && !guest.is_refused;
  };
  if (now_ms < next_telling_ms_ || std::none_of(guests_.begin(), guests_.end(), waits)) return;
  next_telling_ms_ = now_ms + kBeatMs;
  const std::optional<LeaseOwner> owner = read_lease(settings_.job_folder + "/assemble.lease");
  if (!owner || !owner->is_alive) return;
  const auto frame = cluster::make_frame<cluster::Assembling>();
  for (const auto& one : guests_) {
    if (waits(one)) static_cast<void>(cluster::send_frame(one.second->fd.get(), frame));
  }
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

bool Receiver::refuse(Guest& guest, const Error& error) {
  return refuse(guest, error.message, again_after(error));
}

/// Says why, and waits a little for the courier to read it. Its lease runs out, so that the archive
/// names its node.
bool Receiver::refuse(Guest& guest, const std::string& reason, Again again) {
  AON_LOG_WARNING("spool of %s is refused: %s", guest.node.c_str(), reason.c_str());
  auto frame = cluster::make_frame<cluster::Refused>();
  reason.copy(frame.reason, sizeof(frame.reason) - 1);
  frame.again = again;
  guest.is_refused = true;
  guest.give_up_part();
  if (guest.marks) guest.marks->note(reason);
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
