#include "core/cluster/meeting.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>

#include "core/base/file.h"
#include "core/cluster/wire.h"

namespace aon::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLooked = 256;
constexpr auto kForgottenAfter = std::chrono::hours(24 * 7);
constexpr int kAnnounceTries = 20;
constexpr int64_t kFreshMs = 3600'000;  ///< an address is written anew, so that it is not forgotten
constexpr int64_t kFirstLookMs = 200;
constexpr int64_t kLaterLookMs = 30'000;
constexpr int64_t kEarlyMs = 10'000;

/// f_type of statfs(2): of linux/magic.h, and of file systems that are not in the kernel.
constexpr uint32_t kShared[] = {
    0x6969,      // NFS
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB2
    0x517b,      // SMB
    0x00c36400,  // Ceph
    0x01021997,  // 9P
    0x5346414f,  // AFS
    0x6b414653,  // kAFS
    0x7461636f,  // OCFS2
    0x01161970,  // GFS2
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0xaad7aaea,  // PanFS
    0x20030528,  // OrangeFS
    0x013111a8,  // IBRIX
};

/// Long before `now`.
bool is_forgotten(const fs::path& path, fs::file_time_type now) {
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  return !error && now - changed > kForgottenAfter;
}

/// Removes the addresses in a folder of a launch that was killed long before `now`, and it when
/// that were all. What is none of an agent stays: anybody may have chosen any folder to meet in.
void remove_launch(const fs::path& folder, fs::file_time_type now) {
  std::error_code error;
  bool is_of_agents = false;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path name = at->path().filename();
    if (name.extension() != ".address" || !is_forgotten(at->path(), now)) continue;
    if (!read_address(folder.string(), name.stem().string())) continue;
    is_of_agents = true;
    unlink(at->path().c_str());
  }
  if (is_of_agents) rmdir(folder.c_str());
}

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

}  // namespace

bool is_on_disk_of_node(const std::string& folder) {
  struct statfs status {};
  if (statfs(folder.c_str(), &status) != 0) return false;
  const auto type = static_cast<uint32_t>(status.f_type);
  return std::find(std::begin(kShared), std::end(kShared), type) == std::end(kShared);
}

/// Another agent that leaves may remove the folder between two of our steps.
Status announce_at(const std::string& meeting, const std::string& node,
                   const AgentAddress& address) {
  std::error_code error;
  const fs::path above = fs::path(meeting).parent_path();
  fs::create_directories(above, error);
  if (error) return errno_error("cannot create", above.string(), error.value());
  Status status;
  for (int i = 0; i < kAnnounceTries; ++i) {
    status = make_private_folder(meeting);
    if (status) status = write_address(meeting, node, address);
    if (status || status.error().code != Code::kNotFound) break;
  }
  return status;
}

void withdraw_from(const std::string& meeting, const std::string& node, const Token& token) {
  const Result<AgentAddress> there = read_address(meeting, node);
  if (there && there->token == token) remove_address(meeting, node);
  rmdir(meeting.c_str());
}

/// By the file system's own clock, as it dated `meeting` just now.
void remove_forgotten(const std::string& meeting) {
  std::error_code error;
  const fs::file_time_type now = fs::last_write_time(meeting, error);
  if (error) return;
  int looked = 0;
  for (fs::directory_iterator at(fs::path(meeting).parent_path(), error), end;
       !error && at != end && looked < kMostLooked; at.increment(error), ++looked) {
    std::error_code ignored;
    const bool is_folder = at->symlink_status(ignored).type() == fs::file_type::directory;
    if (is_folder && is_forgotten(at->path(), now)) remove_launch(at->path(), now);
  }
}

AddressMirror::~AddressMirror() {
  if (has_told_) withdraw_from(meeting_, node_, own_);
  for (const auto& [node, other] : others_) {
    if (!other.is_brought) continue;
    const Result<AgentAddress> here = read_address(agents_, node);
    if (here && here->token == other.token) remove_address(agents_, node);
  }
}

void AddressMirror::step() {
  const int64_t now = now_ms();
  if (now < next_look_ms_) return;
  if (started_ms_ == 0) started_ms_ = now;
  next_look_ms_ = now + (is_early() ? kFirstLookMs : kLaterLookMs);
  tell_own(now);
  take_others();
}

bool AddressMirror::is_early() const { return now_ms() - started_ms_ < kEarlyMs; }

void AddressMirror::tell_own(int64_t now_ms) {
  const Result<AgentAddress> own = read_address(agents_, node_);
  if (!own) {
    if (has_told_) withdraw_from(meeting_, node_, own_);
    has_told_ = false;
    return;
  }
  if (has_told_ && own->token == own_ && now_ms - told_ms_ < kFreshMs) return;
  has_told_ = static_cast<bool>(announce_at(meeting_, node_, *own));
  own_ = own->token;
  told_ms_ = now_ms;
}

void AddressMirror::take_others() {
  const std::vector<std::string> nodes = list_nodes(meeting_);
  const std::set<std::string> there(nodes.begin(), nodes.end());
  for (auto other = others_.begin(); other != others_.end();) {
    if (there.count(other->first) != 0) {
      ++other;
      continue;
    }
    if (other->second.is_brought) remove_address(agents_, other->first);
    other = others_.erase(other);
  }
  for (const std::string& node : nodes) {
    if (node != node_) take(node);
  }
}

void AddressMirror::take(const std::string& node) {
  struct stat file {};
  if (lstat((meeting_ + "/" + node + ".address").c_str(), &file) != 0) return;
  const auto known = others_.find(node);
  if (known != others_.end() && is_same_file(known->second.file, file)) return;
  const Result<AgentAddress> address = read_address(meeting_, node);
  if (!address) return;
  if (known != others_.end() && known->second.token == address->token) {
    known->second.file = file;  // written anew, so that it is not forgotten
    return;
  }
  // Where it is here already, the directory is shared, and the file is its owner's.
  const Result<AgentAddress> here = read_address(agents_, node);
  const bool was_brought = known != others_.end() && known->second.is_brought;
  const bool is_brought = was_brought || !here || here->token != address->token;
  if (!is_brought || write_address(agents_, node, *address))
    others_[node] = {address->token, file, is_brought};
}

}  // namespace aon::cluster
