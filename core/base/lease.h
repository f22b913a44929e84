/// Lease: a file that says which live process owns something in a job directory on a file system
/// that several nodes share (an agent its node's spool folder, a finalize the assembly).
///
///     DIR/agents/NODE.lease   the agent of NODE, from its start until its spool is complete
///     DIR/assemble.lease      whoever assembles DIR
///
/// One line "host pid start_time_ticks token"; the owner touches the file every kLeaseBeatSeconds.
/// A lease is alive when its process lives (same host: pid and start time are looked up) or, seen
/// from another node, while its age on the file system's own clock is below kLeaseDeadSeconds.
/// Taking over is atomic: the new file is put into place whole (place_file.h); of two takers one
/// fails. Who takes it also removes the private files that killed takers left beside it
/// (PATH.host.pid.number).
/// Thread: a value, one owner.   Signal: never.   Cost: a few file operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/result.h"

namespace aon {

constexpr int kLeaseBeatSeconds = 2;
constexpr int kLeaseDeadSeconds = 20;

struct LeaseOwner {
  std::string host;
  int32_t pid = 0;
  uint64_t start_time_ticks = 0;
  std::string token;
  bool is_alive = false;
  std::string note{};  ///< one line of who keeps it for another (write_lease_of); often empty
};

/// A file system's own time, for who reads many leases of one folder: a file is made beside the
/// first one whose age is wanted, and no other.
class LeaseClock {
 public:
  /// Seconds since 1970; `path` is a lease.
  double now_s(const std::string& path);

 private:
  std::optional<double> now_s_;
};

/// Who holds `path`; nullopt when there is no such file. `clock`: of a pass that is soon over.
std::optional<LeaseOwner> read_lease(const std::string& path, LeaseClock* clock = nullptr);

/// A lease that is kept for a process of another node, which cannot reach the file: the caller
/// touches it as long as it hears of `owner`. An older file is replaced.   Errors: kIo.
Status write_lease_of(const std::string& path, const LeaseOwner& owner);
/// Another owner's is left alone.
void touch_lease_of(const std::string& path, const LeaseOwner& owner) noexcept;

/// Start time (field 22 of /proc/PID/stat) of a live process; 0 when there is none or it is a
/// zombie.
uint64_t process_start_time_ticks(int32_t pid);

/// This node's name as leases and spool folders use it.
std::string local_host_name();

class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  /// Releases the lease: removes the file if it is still ours.
  ~Lease();

  /// Takes the lease for this process.   Errors: kBusy with host and pid of a live owner; kIo.
  static Result<Lease> take(const std::string& path);

  /// Renews the lease; call it every kLeaseBeatSeconds. False: another owner has it now.
  bool beat() noexcept;

  /// The folder of the file was moved.
  void moved_to(std::string path) {
    if (!path_.empty()) path_ = std::move(path);
  }

  /// Removes the file if it is still ours.
  void release() noexcept;

  /// Leaves the file in place for a child that inherited it (fork) or for a successor to judge.
  void forget() noexcept { path_.clear(); }

 private:
  Lease(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  std::string path_;  ///< empty: nothing held
  std::string text_;  ///< what our file says
};

}  // namespace aon
