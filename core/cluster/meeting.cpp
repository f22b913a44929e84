#include "core/cluster/meeting.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "core/base/file.h"
#include "core/cluster/address.h"

namespace aon::cluster {
namespace {

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
    0x65735546,  // FUSE: GlusterFS, DAOS, WekaFS, sshfs
    0x20030528,  // OrangeFS
    0x013111a8,  // IBRIX
    0x786f4256,  // VirtualBox's shared folders
};

}  // namespace

bool is_on_disk_of_node(const std::string& folder) {
  struct statfs status {};
  if (statfs(folder.c_str(), &status) != 0) return false;
  const auto type = static_cast<uint32_t>(status.f_type);
  return std::find(std::begin(kShared), std::end(kShared), type) == std::end(kShared);
}

std::string meeting_folder(const std::string& rendezvous, const std::string& launch_id,
                           const std::string& job_folder) {
  const bool is_name =
      !launch_id.empty() && launch_id.front() != '.' && launch_id.find('/') == std::string::npos;
  if (rendezvous.empty() || !is_name || !is_on_disk_of_node(job_folder)) return "";
  return rendezvous + "/" + launch_id;
}

namespace {

constexpr int kMostLooked = 256;
constexpr auto kForgottenAfter = std::chrono::hours(24 * 7);

/// Of launches that were killed.
void remove_forgotten(const std::filesystem::path& above) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  int looked = 0;
  for (fs::directory_iterator at(above, error), end; !error && at != end && looked < kMostLooked;
       at.increment(error), ++looked) {
    std::error_code ignored;
    const auto changed = fs::last_write_time(at->path(), ignored);
    if (ignored || now - changed < kForgottenAfter || !at->is_directory(ignored)) continue;
    for (fs::directory_iterator file(at->path(), ignored); !ignored && file != end;
         file.increment(ignored)) {
      if (file->path().extension() == ".address") unlink(file->path().c_str());
    }
    rmdir(at->path().c_str());
  }
}

}  // namespace

Status make_meeting_folder(const std::string& meeting) {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::path(meeting).parent_path();
  std::filesystem::create_directories(above, error);
  if (error) return errno_error("cannot create", above.string(), error.value());
  remove_forgotten(above);
  return make_private_folder(meeting);
}

void leave_meeting_folder(const std::string& meeting) { rmdir(meeting.c_str()); }

}  // namespace aon::cluster
