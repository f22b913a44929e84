#include "writers/assemble/assembly_lease.h"

#include <system_error>
#include <utility>

namespace aon::writers {

Result<std::unique_ptr<AssemblyLease>> AssemblyLease::take(const std::filesystem::path& folder,
                                                           LeaseTimes times) {
  Result<Lease> lease = Lease::take((folder / "assemble.lease").string());
  if (!lease) return lease.error();
  return std::make_unique<AssemblyLease>(std::move(*lease), times);
}

AssemblyLease::AssemblyLease(Lease lease, LeaseTimes times)
    : lease_(std::move(lease)), times_(times) {
  try {
    thread_.emplace(times_.every, [this] {
      const Clock::time_point now = Clock::now();
      const bool hangs = now - worked_.load(std::memory_order_relaxed) > times_.longest_silence;
      if (!hangs) renew_when_due(now);
    });
  } catch (const std::system_error&) {  // no more threads here: beat() has to do
  }
}

void AssemblyLease::beat() {
  const Clock::time_point now = Clock::now();
  worked_.store(now, std::memory_order_relaxed);
  renew_when_due(now);
}

bool AssemblyLease::is_held() {
  renew(Clock::now());
  return !is_lost_.load(std::memory_order_relaxed);
}

/// Half of the time: whoever comes a little early must not leave it for one more round.
void AssemblyLease::renew_when_due(Clock::time_point now) {
  if (now - renewed_.load(std::memory_order_relaxed) >= times_.every / 2) renew(now);
}

void AssemblyLease::renew(Clock::time_point now) {
  renewed_.store(now, std::memory_order_relaxed);
  if (!lease_.beat()) is_lost_.store(true, std::memory_order_relaxed);
}

}  // namespace aon::writers
