#include "writers/assemble/writer_set.h"

#include <memory>
#include <utility>

#include "writers/assemble/device_spans.h"
#include "writers/hdf5/hdf5_share.h"
#include "writers/otf2/otf2_writer.h"
#include "writers/otf2/samples_writer.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;

/// All but the one of profile.h5. The steps come first: others look at them while events pass.
/// In a share, which does not finish it, nothing is known of the archive.
std::vector<WriterSlot> make_common(const fs::path& folder, const WriterPlan& plan,
                                    WaitAnalysis* waits, StepPlan steps, Collectors* collectors,
                                    bool is_share) {
  std::vector<WriterSlot> writers;
  auto meter = make_step_meter(std::move(steps), waits, plan.max_step_rows);
  collectors->steps = meter.get();
  writers.push_back({"steps", std::move(meter), {}, false});
  if (plan.has_devices) {
    const uint64_t bytes = plan.device_bytes / DeviceSpans::kSpanBytes * DeviceAnalysis::kItemBytes;
    auto devices = make_device_analysis(folder, collectors->steps, bytes);
    collectors->devices = devices.get();
    writers.push_back({"devices", std::move(devices), {}, false});
  }
  auto findings = std::make_unique<Findings>(waits != nullptr ? waits->summary() : nullptr);
  collectors->findings = findings.get();
  writers.push_back({"findings", std::move(findings), {}, false});
  auto lateness = std::make_unique<nccl::LatenessAnalysis>(folder);
  collectors->lateness = lateness.get();
  lateness->use_steps(collectors->steps);
  if (collectors->devices != nullptr) {
    collectors->devices->add_nccl_listener(
        [to = lateness.get()](const devices::TimedOperation& one) {
          return to->add_kernel_times(one);
        });
  }
  collectors->findings->use_nccl(lateness.get());
  collectors->findings->use_steps(collectors->steps);
  collectors->findings->use_devices(collectors->devices);
  writers.push_back({"lateness", std::move(lateness), {}, false});
  auto totals = std::make_unique<TotalsCollector>();
  collectors->totals = totals.get();
  writers.push_back({"totals", std::move(totals), {}, false});
  if (plan.may_hang) {
    auto finder = std::make_unique<HangFinder>();
    collectors->hangs = finder.get();
    writers.push_back({"hangs", std::move(finder), {}, false});
  }
  if (plan.writes_otf2) {
    WaitAnalysis* told = plan.has_room_for_waits ? waits : nullptr;
    nccl::LatenessAnalysis* late = plan.has_room_for_nccl_waits ? collectors->lateness : nullptr;
    if (late != nullptr) late->keep_waits();
    writers.push_back(
        {kArchiveName,
         make_otf2_writer(folder, told, plan.nccl_as_mpi, late,
                          is_share ? nullptr : &collectors->lacks, plan.has_room_for_counters,
                          {plan.most_markers, is_share ? nullptr : &collectors->markers},
                          plan.has_room_for_devices),
         {}});
    writers.push_back({kSamplesName, make_samples_writer(folder), {}});
  }
  return writers;
}

}  // namespace

/// Rows of the profile reach the findings while profile.h5 is written.
std::vector<WriterSlot> make_writers(const fs::path& folder, const WriterPlan& plan,
                                     WaitAnalysis* waits, StepPlan steps, Collectors* collectors) {
  std::vector<WriterSlot> writers =
      make_common(folder, plan, waits, std::move(steps), collectors, /*is_share=*/false);
  if (!plan.writes_hdf5) return writers;
  ProfileListener listener = [sink = collectors->findings](
                                 const Group& group, const Location* location,
                                 std::span<const profile::RegionStatistics> rows) {
    sink->add_profile(group, location, rows);
  };
  collectors->findings->use_proxies(&collectors->notes.proxies);
  const WaitSummary* summary = waits != nullptr ? waits->summary() : nullptr;
  auto writer = make_hdf5_writer(folder / "profile.h5", listener, summary, collectors->steps,
                                 collectors->devices, collectors->lateness, &collectors->notes);
  writers.push_back({kProfileName, std::move(writer), {}});
  return writers;
}

std::vector<WriterSlot> make_share_writers(const fs::path& folder, const std::string& name,
                                           const WriterPlan& plan, WaitAnalysis* waits,
                                           StepPlan steps) {
  Collectors collectors;
  std::vector<WriterSlot> writers =
      make_common(folder, plan, waits, std::move(steps), &collectors, /*is_share=*/true);
  if (plan.writes_hdf5) {
    const std::string file = "series/" + name + ".h5";
    writers.push_back({kProfileName, make_hdf5_share(folder / file, file, collectors.devices), {}});
  }
  return writers;
}

}  // namespace aon::writers
