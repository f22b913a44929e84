/// The lease of an assembly (core/base/lease.h), from before the first look at the job until
/// nothing is left to do. A thread renews it: reading definitions, looking up names and syncing
/// take longer than other nodes wait for a sign of life.
///
/// The assembly says by beat() that it goes on, where it reads events and waits for shares. When it
/// has not for `longest_silence` it hangs: the lease is left to age, and others take over.
///
/// Owner: whoever assembles.   Thread: one, beside its own.   Cost: a read and a touch every
/// kLeaseBeatSeconds.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/lease.h"
#include "core/base/result.h"
#include "writers/assemble/beat_thread.h"

namespace aon::writers {

struct LeaseTimes {
  std::chrono::milliseconds every = std::chrono::seconds(kLeaseBeatSeconds);
  /// An agent's keeper ends an assembly after this time (core/agent/assemble.cpp), too.
  std::chrono::milliseconds longest_silence = std::chrono::hours(1);
};

class AssemblyLease {
 public:
  /// Errors: kBusy with host and pid of a live owner; kIo.
  static Result<std::unique_ptr<AssemblyLease>> take(const std::filesystem::path& folder,
                                                     LeaseTimes times = {});
  AssemblyLease(Lease lease, LeaseTimes times);
  AssemblyLease(const AssemblyLease&) = delete;
  AssemblyLease& operator=(const AssemblyLease&) = delete;

  /// The assembly goes on. Cheap, for it is called at every few records.
  void beat();
  /// Looks. False: somebody took it over, who has removed what we were making.
  bool is_held();

 private:
  using Clock = std::chrono::steady_clock;

  void renew(Clock::time_point now);
  void renew_when_due(Clock::time_point now);

  // Owner thread: constant while the other one lives.
  Lease lease_;
  const LeaseTimes times_;
  // Shared: each stands alone.
  std::atomic<Clock::time_point> worked_{Clock::now()};
  std::atomic<Clock::time_point> renewed_{Clock::now()};
  std::atomic<bool> is_lost_{false};

  std::optional<BeatThread> thread_;  ///< last: it uses the others
};

}  // namespace aon::writers
