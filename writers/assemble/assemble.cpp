#include "writers/assemble/assemble.h"

#include <chrono>
#include <memory>
#include <system_error>

#include "core/base/lease.h"
#include "writers/assemble/event_pass.h"
#include "writers/assemble/publish.h"
#include "writers/hdf5/hdf5_writer.h"
#include "writers/otf2/otf2_writer.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

/// Renews the lease every kLeaseBeatSeconds, however often it is called.
class Heartbeat {
 public:
  explicit Heartbeat(Lease* lease) : lease_(lease), last_(SteadyClock::now()) {}
  void operator()() {
    const auto now = SteadyClock::now();
    if (now - last_ < std::chrono::seconds(kLeaseBeatSeconds)) return;
    last_ = now;
    lease_->beat();
  }

 private:
  Lease* lease_;
  SteadyClock::time_point last_;
};

std::vector<WriterSlot> make_writers(const fs::path& folder, const AssembleOptions& options) {
  std::vector<WriterSlot> writers;
  if (options.writes_otf2) writers.push_back({"OTF2 archive", make_otf2_writer(folder), {}});
  if (options.writes_hdf5) {
    writers.push_back({"profile.h5", make_hdf5_writer(folder / "profile.h5"), {}});
  }
  return writers;
}

/// Takes away what a failed writer left, so that no half file is published.
void remove_failed(const fs::path& staging, const WriterSlot& slot) {
  std::error_code ignored;
  if (slot.name == "profile.h5") {
    fs::remove(staging / "profile.h5", ignored);
    return;
  }
  for (const char* name : {"traces", "traces.def", "traces.otf2"}) {
    fs::remove_all(staging / name, ignored);
  }
}

Status collect_failures(const fs::path& staging, const std::vector<WriterSlot>& writers,
                        AssembleReport* report) {
  size_t failed_count = 0;
  for (const WriterSlot& slot : writers) {
    if (slot.status) continue;
    ++failed_count;
    report->warnings.push_back(slot.name + ": " + slot.status.error().message);
    remove_failed(staging, slot);
  }
  if (failed_count == 0 || failed_count < writers.size()) return {};
  return Error{Code::kIo, report->warnings.front()};
}

}  // namespace

Result<AssembleReport> assemble(const fs::path& folder, const AssembleOptions& options) {
  const auto start = SteadyClock::now();
  Result<Lease> lease = Lease::take((folder / "assemble.lease").string());
  if (!lease) return lease.error();
  Heartbeat heartbeat(&*lease);
  Result<std::unique_ptr<JobModel>> parts = build_model(folder, options.otf2_locations);
  if (!parts) return parts.error();
  Result<Staging> staging = Staging::create(folder);
  if (!staging) return staging.error();

  AssembleReport report;
  std::vector<WriterSlot> writers = make_writers(staging->path(), options);
  EventPass pass(**parts, writers, [&] { heartbeat(); });
  Status status = pass.run();
  if (!status) return status.error();
  status = collect_failures(staging->path(), writers, &report);
  writers.clear();
  if (!status) return status.error();

  report.outcome = pass.outcome();
  for (const LocationTally& tally : pass.tallies()) {
    report.record_count += tally.decoded;
    report.lost_count += tally.lost_count();
  }
  Result<uint64_t> bytes = staging->sync();
  if (!bytes) return bytes.error();
  report.archive_bytes = *bytes;
  status = staging->publish();
  if (!status) return status.error();
  report.seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  return report;
}

}  // namespace aon::writers
