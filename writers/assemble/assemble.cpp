#include "writers/assemble/assemble.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>

#include "core/base/lease.h"
#include "core/spool/files.h"
#include "writers/assemble/clocks.h"
#include "writers/assemble/event_pass.h"
#include "writers/assemble/fallback.h"
#include "writers/assemble/publish.h"
#include "writers/devices/devices.h"
#include "writers/hang/hang.h"
#include "writers/hdf5/hdf5_writer.h"
#include "writers/ledger/findings.h"
#include "writers/ledger/ledger.h"
#include "writers/ledger/totals.h"
#include "writers/nccl/lateness.h"
#include "writers/otf2/otf2_writer.h"
#include "writers/otf2/samples_writer.h"
#include "writers/steps/steps.h"
#include "writers/waits/waits.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
/// Of a traced MPI call: its Enter, Leave, message and waiting time, rounded up.
constexpr uint64_t kArchiveBytesPerRecord = 72;
// What else stands below --disk, measured on real jobs and rounded up.
constexpr uint64_t kFixedBytes = 576u << 10;   ///< tables of profile.h5, global definitions, ledger
constexpr uint64_t kGroupBytes = 6u << 10;     ///< rows of a process there
constexpr uint64_t kTimelineBytes = 8u << 10;  ///< of a location in the archive: two small files
constexpr uint64_t kLocationBytes = 1u << 10;  ///< of one outside of it
constexpr uint64_t kSampleBytes = 48;          ///< of a metric, in profile.h5 and in the archive
constexpr uint64_t kCallPathBytes = 64;
constexpr uint64_t kFunctionBytes = 192;
constexpr uint64_t kStepRowBytes = 12;
constexpr uint64_t kStepShare = 4;      ///< of what is left, one part is for rows of steps
constexpr uint64_t kArchiveLeast = 32;  ///< of the cap, one part is for the archive in any case
constexpr const char* kSamplesArchive = "archive of samples";
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

/// The law of the ledger does not hold: an error of ours, which the reader has to know of.
void add_law_warning(std::span<const LocationTally> tallies, std::vector<std::string>* warnings) {
  size_t count = 0;
  const LocationTally* first = nullptr;
  for (const LocationTally& tally : tallies) {
    if (!is_thread_of_process(*tally.location) || tally.adds_up()) continue;
    if (count++ == 0) first = &tally;
  }
  if (first == nullptr) return;
  warnings->push_back("the counts of " + std::to_string(count) +
                      " threads do not add up: at location " + std::to_string(first->location->id) +
                      " " + std::to_string(first->emitted()) + " records were emitted, but " +
                      std::to_string(first->decoded) + " are in the spool and " +
                      std::to_string(first->lost_count()) + " known as lost; please report it");
}

/// What only the ledger needs of the events.
struct Collectors {
  Findings* findings = nullptr;
  TotalsCollector* totals = nullptr;
  StepMeter* steps = nullptr;
  DeviceAnalysis* devices = nullptr;           ///< null: there are none
  HangFinder* hangs = nullptr;                 ///< null: nothing was open or quiet for long
  nccl::LatenessAnalysis* lateness = nullptr;  ///< of operations of NCCL
};

/// The findings come first in line: rows of the profile reach them while profile.h5 is written.
/// So do the steps, which end up in it too.
/// `has_room`: for a second location for each thread in the archive. `device_bytes`: where there
/// are devices, how much may be written to sort their work.
std::vector<WriterSlot> make_writers(const fs::path& folder, const AssembleOptions& options,
                                     WaitAnalysis* waits, bool has_room, bool may_hang,
                                     std::optional<uint64_t> device_bytes, StepPlan plan,
                                     uint64_t max_step_rows, Collectors* collectors) {
  std::vector<WriterSlot> writers;
  auto meter = make_step_meter(std::move(plan), waits, max_step_rows);
  collectors->steps = meter.get();
  writers.push_back({"steps", std::move(meter), {}, false});
  if (device_bytes) {
    auto devices = make_device_analysis(folder, collectors->steps, *device_bytes);
    collectors->devices = devices.get();
    writers.push_back({"devices", std::move(devices), {}, false});
  }
  const WaitSummary* summary = waits != nullptr ? waits->summary() : nullptr;
  auto collector = std::make_unique<Findings>(summary);
  collectors->findings = collector.get();
  writers.push_back({"findings", std::move(collector), {}, false});
  auto lateness = std::make_unique<nccl::LatenessAnalysis>(folder);
  collectors->lateness = lateness.get();
  collectors->findings->use_nccl(lateness.get());
  writers.push_back({"lateness", std::move(lateness), {}, false});
  auto totals = std::make_unique<TotalsCollector>();
  collectors->totals = totals.get();
  writers.push_back({"totals", std::move(totals), {}, false});
  if (may_hang) {
    auto finder = std::make_unique<HangFinder>();
    collectors->hangs = finder.get();
    writers.push_back({"hangs", std::move(finder), {}, false});
  }
  if (options.writes_otf2) {
    WaitAnalysis* told = has_room ? waits : nullptr;
    writers.push_back({"OTF2 archive", make_otf2_writer(folder, told, options.nccl_as_mpi), {}});
    writers.push_back({kSamplesArchive, make_samples_writer(folder), {}});
  }
  if (options.writes_hdf5) {
    ProfileListener listener = [sink = collectors->findings](
                                   const Group& group, const Location* location,
                                   std::span<const profile::RegionStatistics> rows) {
      sink->add_profile(group, location, rows);
    };
    auto writer = make_hdf5_writer(folder / "profile.h5", listener, summary, collectors->steps,
                                   collectors->devices, collectors->lateness);
    writers.push_back({"profile.h5", std::move(writer), {}});
  }
  return writers;
}

uint64_t folder_bytes(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  // The spool of a node may be a link (--spool-dir).
  fs::recursive_directory_iterator entries(folder, fs::directory_options::follow_directory_symlink,
                                           error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    const uintmax_t size = entries->file_size(ignored);
    if (!ignored && entries->is_regular_file(ignored)) bytes += size;
  }
  return bytes;
}

/// Takes away what a failed writer left, so that no half file is published.
void remove_failed(const fs::path& staging, const WriterSlot& slot) {
  std::error_code ignored;
  if (slot.name == "profile.h5") {
    fs::remove(staging / "profile.h5", ignored);
    return;
  }
  if (slot.name == kSamplesArchive) {
    fs::remove_all(staging / "samples", ignored);
    return;
  }
  for (const char* name : {"traces", "traces.def", "traces.otf2"}) {
    fs::remove_all(staging / name, ignored);
  }
}

Status collect_failures(const fs::path& staging, const std::vector<WriterSlot>& writers,
                        AssembleReport* report) {
  bool has_result = false;
  bool has_failure = false;
  for (const WriterSlot& slot : writers) {
    has_result = has_result || (slot.status && slot.makes_files);
    if (slot.status) continue;
    has_failure = true;
    report->warnings.push_back(slot.name + ": " + slot.status.error().message);
    if (slot.makes_files) remove_failed(staging, slot);
  }
  if (has_result || !has_failure) return {};
  return Error{Code::kIo, report->warnings.front()};
}

/// One assembly, under the lease.
class Assembly {
 public:
  Assembly(const fs::path& folder, const AssembleOptions& options, std::function<void()> beat)
      : folder_(folder), options_(options), beat_(std::move(beat)) {}

  Result<AssembleReport> run();

 private:
  Status prepare(const fs::path& staging);
  Status note_missing_links();
  void fit_archive();
  uint64_t bytes_beside_events() const;
  Status convert(const fs::path& staging);
  bool has_room_for_waits() const;
  bool has_devices() const;
  void add_warnings(std::vector<std::string> lines) {
    std::move(lines.begin(), lines.end(), std::back_inserter(report_.warnings));
  }
  Result<std::unique_ptr<WaitAnalysis>> analyse_waits(const fs::path& staging);
  Status write_the_ledger(const fs::path& staging, const EventPass& pass,
                          const Collectors& collectors, const WaitSummary* waits);
  double seconds() const {
    return std::chrono::duration<double>(SteadyClock::now() - start_).count();
  }

  const fs::path& folder_;
  const AssembleOptions& options_;
  std::function<void()> beat_;
  SteadyClock::time_point start_ = SteadyClock::now();
  std::unique_ptr<JobModel> parts_;
  AssembleReport report_;
  StepPlan step_plan_;
  uint64_t max_step_rows_ = kMaxStepRows;
  uint64_t device_bytes_ = UINT64_MAX - 1;  ///< for sorting their work
  size_t missing_node_count_ = 0;           ///< whose spool is a link to nothing
};

Result<AssembleReport> Assembly::run() {
  Result<Staging> staging = Staging::create(folder_);
  if (!staging) return staging.error();
  Status status = prepare(staging->path());
  if (!status) return status.error();
  status = convert(staging->path());
  if (!status) return status.error();
  Result<uint64_t> bytes = staging->sync();
  if (!bytes) return bytes.error();
  report_.archive_bytes = *bytes;
  status = staging->publish();
  if (!status) return status.error();
  const bool wants_drop = options_.drops_spool && !options_.is_snapshot && report_.warnings.empty();
  if (wants_drop && options_.may_drop_spool && !options_.may_drop_spool()) {
    report_.warnings.push_back("the spool stays: a node of the launch still works, or was lost");
  } else if (wants_drop) {
    staging->discard("spool");
    remove_spool(staging->path());
  }
  report_.seconds = seconds();
  return report_;
}

/// Without the spool of a node the result is poorer: it must not take the place of an older one.
Status Assembly::note_missing_links() {
  for (const spool::MissingLink& missing : spool::find_missing_links(folder_)) {
    const std::string text = spool::describe(missing);
    std::error_code ignored;
    if (fs::exists(folder_ / "aon.json", ignored)) return Error{Code::kNotFound, text};
    report_.warnings.push_back(text);
    ++missing_node_count_;
  }
  return {};
}

/// Leftover rings become part of the spool, then the model is made of all of it.
Status Assembly::prepare(const fs::path& staging) {
  if (Status status = note_missing_links(); !status) return status;
  if (!options_.is_snapshot) {
    Result<std::vector<std::string>> lines = convert_leftover_rings(folder_, staging);
    if (!lines) return lines.error();
    add_warnings(std::move(*lines));
  }
  Result<std::unique_ptr<JobModel>> parts =
      build_model(folder_, options_.otf2_locations, options_.uses_debuginfod);
  if (!parts) return parts.error();
  parts_ = std::move(*parts);
  add_warnings(clock_remarks(parts_->model));
  fit_archive();
  return {};
}

/// Of all that does not grow with the records of calls.
uint64_t Assembly::bytes_beside_events() const {
  const Model& model = parts_->model;
  uint64_t bytes =
      kFixedBytes + model.groups.size() * kGroupBytes + parts_->series_record_count * kSampleBytes +
      model.call_paths.size() * kCallPathBytes + model.functions.size() * kFunctionBytes;
  for (const Location& location : model.locations)
    bytes += location.in_archive ? kTimelineBytes : kLocationBytes;
  return bytes;
}

/// Leaves the oldest events out of the archive when all of them would not fit on the disk.
void Assembly::fit_archive() {
  uint64_t cap_bytes = options_.disk_cap_bytes * parts_->job.nodes.size();
  if (cap_bytes == 0) {
    for (const spool::Node& node : parts_->job.nodes) cap_bytes += node.definition.disk_cap_bytes;
  }
  if (cap_bytes == 0) return;
  const uint64_t used_bytes = folder_bytes(folder_ / "spool");
  const uint64_t other_bytes = used_bytes + bytes_beside_events();
  uint64_t room_bytes =
      std::max(cap_bytes > other_bytes ? cap_bytes - other_bytes : 0, cap_bytes / kArchiveLeast);
  // Steps are few or, where each call is one, as many as records.
  const uint64_t step_count = std::min(kMaxStepRows, parts_->load.record_count());
  max_step_rows_ = std::min(step_count, room_bytes / kStepShare / kStepRowBytes);
  room_bytes -= max_step_rows_ * kStepRowBytes;
  // Sorting the work of devices needs two temporary files beside the archive.
  uint64_t record_bytes = kArchiveBytesPerRecord;
  if (has_devices()) {
    record_bytes += DeviceSpans::kSpanBytes + DeviceAnalysis::kItemBytes;
    device_bytes_ = room_bytes / record_bytes * DeviceSpans::kSpanBytes;
  }
  const uint64_t start_ns = parts_->load.window_start_ns(room_bytes / record_bytes);
  parts_->model.archive_start_ns = start_ns;
  if (start_ns == 0) return;
  report_.warnings.push_back("the OTF2 archive begins at " + iso_time(start_ns) +
                             ": earlier events would not fit below --disk; they are in the spool");
}

bool Assembly::has_devices() const {
  const std::vector<Location>& locations = parts_->model.locations;
  return std::any_of(locations.begin(), locations.end(), [](const Location& location) {
    return location.type == LocationType::kAcceleratorStream;
  });
}

bool Assembly::has_room_for_waits() const {
  const std::vector<Location>& locations = parts_->model.locations;
  uint64_t wanted_count = 0;
  for (const Location& location : locations) {
    if (location.in_archive) wanted_count += location.type == LocationType::kThread ? 2 : 1;
  }
  return wanted_count <= options_.otf2_locations;
}

/// A pass of its own, for the archive has each call's waiting beside the call, and steps are cut
/// where the loops are known. Also makes the plan of the steps.
Result<std::unique_ptr<WaitAnalysis>> Assembly::analyse_waits(const fs::path& staging) {
  auto analysis = make_wait_analysis(staging, beat_);
  WaitAnalysis* result = analysis.get();
  std::vector<WriterSlot> slots;
  slots.push_back({"waits", std::move(analysis), {}, false});
  auto finder = make_step_finder();
  StepFinder* found = finder.get();
  slots.push_back({"steps", std::move(finder), {}, false});
  Status status = EventPass(*parts_, slots, beat_, EventPass::kWithoutDevices).run();
  if (!status) return status.error();
  if (slots[1].status) step_plan_ = found->plan();
  if (!slots[0].status) {
    report_.warnings.push_back("waits: " + slots[0].status.error().message);
    return std::unique_ptr<WaitAnalysis>();  // with its temporary file, which may fill the disk
  }
  static_cast<void>(slots[0].writer.release());
  return std::unique_ptr<WaitAnalysis>(result);
}

Status Assembly::convert(const fs::path& staging) {
  Collectors collectors;
  // A job without a process that recorded (no MPI, no annotation) has a ledger that says so.
  AssembleOptions wanted = options_;
  if (parts_->model.groups.empty()) wanted.writes_otf2 = wanted.writes_hdf5 = false;
  std::unique_ptr<WaitAnalysis> waits;
  if (wanted.writes_otf2 || wanted.writes_hdf5) {
    Result<std::unique_ptr<WaitAnalysis>> analysed = analyse_waits(staging);
    if (!analysed) return analysed.error();
    waits = std::move(*analysed);
    if (waits) {
      add_warnings(cover_violations(waits->summary()->clock_violations, &parts_->model));
    }
  }
  std::optional<uint64_t> use_bytes;
  if (has_devices())
    use_bytes = device_bytes_ / DeviceSpans::kSpanBytes * DeviceAnalysis::kItemBytes;
  std::vector<WriterSlot> writers =
      make_writers(staging, wanted, waits.get(), has_room_for_waits(), may_hang(parts_->model),
                   use_bytes, std::move(step_plan_), max_step_rows_, &collectors);
  collectors.findings->use_steps(collectors.steps);
  collectors.findings->use_devices(collectors.devices);
  EventPass pass(*parts_, writers, beat_, device_bytes_);
  Status status = pass.run();
  if (!status) return status;
  if (const uint64_t count = pass.left_out_device_count(); count != 0) {
    report_.warnings.push_back(std::to_string(count) +
                               " pieces of work of devices, the oldest, are left out: sorting them "
                               "would not fit below --disk; they are in the spool");
  }
  status = collect_failures(staging, writers, &report_);
  if (!status) return status;
  report_.outcome = pass.outcome();
  add_law_warning(pass.tallies(), &report_.warnings);
  for (const LocationTally& tally : pass.tallies()) {
    report_.record_count += tally.decoded;
    report_.lost_count += tally.lost_count();
  }
  return write_the_ledger(staging, pass, collectors, waits ? waits->summary() : nullptr);
}

Status Assembly::write_the_ledger(const fs::path& staging, const EventPass& pass,
                                  const Collectors& collectors, const WaitSummary* waits) {
  LedgerFacts facts;
  facts.model = &parts_->model;
  facts.clocks = parts_->clocks;
  facts.tallies = pass.tallies();
  facts.outcome = pass.outcome();
  facts.findings = collectors.findings->lines(pass.tallies());
  if (collectors.hangs != nullptr) {
    const HangReport& report = collectors.hangs->report();
    facts.hangs = hang_lines(parts_->model, report, parts_->model.end_ns);
    const std::string finding = hang_finding(parts_->model, report);
    // Losses stand first: they qualify all the rest.
    const bool has_losses = report_.lost_count != 0 && !facts.findings.empty();
    if (!finding.empty())
      facts.findings.insert(facts.findings.begin() + (has_losses ? 1 : 0), finding);
    if (facts.findings.size() > kMaxFindings) facts.findings.resize(kMaxFindings);
  }
  facts.warnings = report_.warnings;
  facts.waits = waits;
  facts.functions = collectors.findings->functions();
  facts.totals = &collectors.totals->totals();
  facts.steps = collectors.steps->summary();
  facts.disk_used_bytes = folder_bytes(staging) + folder_bytes(folder_ / "spool");
  facts.assembly_seconds = seconds();
  facts.is_snapshot = options_.is_snapshot;
  facts.missing_node_count = missing_node_count_;
  facts.lost_nodes = options_.lost_nodes;
  return write_ledger(staging / "aon.json", facts);
}

}  // namespace

Result<AssembleReport> assemble(const fs::path& folder, const AssembleOptions& options) {
  Result<Lease> lease = Lease::take((folder / "assemble.lease").string());
  if (!lease) return lease.error();
  Heartbeat heartbeat(&*lease);
  return Assembly(folder, options, [&] { heartbeat(); }).run();
}

Status remove_leftovers(const fs::path& folder) {
  Result<Lease> lease = Lease::take((folder / "assemble.lease").string());
  if (!lease) return lease.error();
  return remove_stale_staging(folder);
}

}  // namespace aon::writers
