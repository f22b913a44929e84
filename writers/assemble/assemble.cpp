#include "writers/assemble/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "core/base/time.h"
#include "core/spool/files.h"
#include "writers/assemble/clocks.h"
#include "writers/assemble/combine.h"
#include "writers/assemble/event_pass.h"
#include "writers/assemble/failed_writers.h"
#include "writers/assemble/fallback.h"
#include "writers/assemble/job_markers.h"
#include "writers/assemble/publish.h"
#include "writers/assemble/shares.h"
#include "writers/assemble/writer_set.h"
#include "writers/hang/hang.h"
#include "writers/ledger/death_finding.h"
#include "writers/ledger/gpu_errors.h"
#include "writers/ledger/ledger.h"
#include "writers/otf2/otf2_writer.h"

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
constexpr uint64_t kMarkerShare = 64;   ///< of the cap, one part at most is for its markers
constexpr const char* kProgramsProvider = "user";
using SteadyClock = std::chrono::steady_clock;

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

/// That its program sets, by aon_counter.
bool defines_counters(const Model& model, const Group& group) {
  return std::any_of(group.metric_map.begin(), group.metric_map.end(), [&](const auto& metric) {
    return model.metrics[metric.second].provider == kProgramsProvider;
  });
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

/// One assembly, under the lease.
class Assembly {
 public:
  Assembly(const fs::path& folder, const AssembleOptions& options, AssemblyLease* lease)
      : folder_(folder), options_(options), lease_(lease), beat_([lease] { lease->beat(); }) {}

  Result<AssembleReport> run();

 private:
  Status prepare(const fs::path& staging);
  Status note_missing_links();
  Status fit_archive();
  uint64_t bytes_beside_events() const;
  Status convert(const fs::path& staging);
  enum class Beside { kDevices, kCounters, kWaits, kNcclWaits };
  uint64_t location_count_with(Beside last) const;
  std::vector<std::string> left_out_metrics(const Passed& passed) const;
  bool has(LocationType type) const;
  bool has_nccl() const;
  void add_warnings(std::vector<std::string> lines) {
    std::move(lines.begin(), lines.end(), std::back_inserter(report_.warnings));
  }
  WriterPlan writer_plan() const;
  std::optional<SharePlan> share_plan(std::vector<bool>* is_elsewhere) const;
  Status pass_in_shares(const fs::path& staging, Passed* passed);
  Status pass_alone(const fs::path& staging, Passed* passed);
  Status analyse_waits(const fs::path& staging, StepPlan* steps, Passed* passed);
  Status write_the_ledger(const fs::path& staging, const Passed& passed);
  double seconds() const {
    return std::chrono::duration<double>(SteadyClock::now() - start_).count();
  }

  const fs::path& folder_;
  const AssembleOptions& options_;
  AssemblyLease* lease_;
  std::function<void()> beat_;
  SteadyClock::time_point start_ = SteadyClock::now();
  std::unique_ptr<JobModel> parts_;
  AssembleReport report_;
  uint64_t max_step_rows_ = kMaxStepRows;
  uint64_t most_markers_ = otf2::kMostMarkers;
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
  if (!lease_->is_held())
    return Error{Code::kBusy, "another process has taken over the assembly of " + folder_.string()};
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
      build_model(folder_, options_.otf2_locations, options_.symbol_search);
  if (!parts) {
    Error error = parts.error();  // what could not be read of the rings may be all there was
    for (const std::string& warning : report_.warnings) error.message += "; " + warning;
    return error;
  }
  parts_ = std::move(*parts);
  if (parts_->job.has_damaged_definitions)
    report_.warnings.push_back("definitions in the spool are damaged (" +
                               std::to_string(parts_->job.damaged_blocks) +
                               " blocks at least): names, processes and ends may be missing, so "
                               "nothing is concluded from times");
  add_warnings(clock_remarks(*parts_));
  return fit_archive();
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
Status Assembly::fit_archive() {
  // Rings without an agent, and agents of a node one after another, have folders of their own.
  std::set<std::string> hosts;
  for (const spool::Node& node : parts_->job.nodes) hosts.insert(node.host);
  uint64_t cap_bytes = options_.disk_cap_bytes * hosts.size();
  if (cap_bytes == 0) {
    for (const spool::Node& node : parts_->job.nodes) cap_bytes += node.definition.disk_cap_bytes;
  }
  if (cap_bytes == 0) return {};
  most_markers_ = std::min(most_markers_, cap_bytes / kMarkerShare / otf2::kMarkerBytes);
  const uint64_t used_bytes = folder_bytes(folder_ / "spool");
  const uint64_t other_bytes =
      used_bytes + bytes_beside_events() + most_markers_ * otf2::kMarkerBytes;
  uint64_t room_bytes =
      std::max(cap_bytes > other_bytes ? cap_bytes - other_bytes : 0, cap_bytes / kArchiveLeast);
  // Steps are few or, where each call is one, as many as records.
  const uint64_t step_count = std::min(kMaxStepRows, parts_->load.record_count());
  max_step_rows_ = std::min(step_count, room_bytes / kStepShare / kStepRowBytes);
  room_bytes -= max_step_rows_ * kStepRowBytes;
  // Sorting the work of devices needs two temporary files beside the archive, as do operations of
  // NCCL.
  uint64_t record_bytes = kArchiveBytesPerRecord;
  if (has(LocationType::kAcceleratorStream)) {
    record_bytes += DeviceSpans::kSpanBytes + DeviceAnalysis::kItemBytes;
    if (has_nccl()) {
      using nccl::LatenessAnalysis;
      record_bytes += sizeof(NcclSpan) + LatenessAnalysis::kPartBytes;
      if (nccl::may_have_steps(parts_->model)) record_bytes += LatenessAnalysis::kSendBytes;
      if (writer_plan().has_room_for_nccl_waits) record_bytes += LatenessAnalysis::kWaitBytes;
    }
    device_bytes_ = room_bytes / record_bytes * DeviceSpans::kSpanBytes;
  }
  // One record per location, its last call, has a place in what each costs anyway.
  const uint64_t record_room =
      std::max<uint64_t>(room_bytes / record_bytes, parts_->model.locations.size());
  const Result<uint64_t> start_ns = window_start_ns(*parts_, record_room, beat_);
  if (!start_ns) return start_ns.error();
  parts_->model.archive_start_ns = *start_ns;
  if (*start_ns == 0) return {};
  const char* samples = has(LocationType::kSamples)
                            ? ", samples/traces.otf2 (missing where all samples are earlier)"
                            : "";
  report_.warnings.push_back(std::string("the OTF2 archive") + samples +
                             ", and in profile.h5 what threads set as counters, begin at " +
                             iso_time(*start_ns) +
                             ": earlier events might not fit below --disk; they are in the spool, "
                             "and aon finalize --disk SIZE with a larger one takes them in");
  return {};
}

bool Assembly::has(LocationType type) const {
  const std::vector<Location>& locations = parts_->model.locations;
  return std::any_of(locations.begin(), locations.end(),
                     [type](const Location& location) { return location.type == type; });
}

bool Assembly::has_nccl() const {
  const Model& model = parts_->model;
  return std::any_of(
      model.locations.begin(), model.locations.end(),
      [&model](const Location& location) { return is_nccl_timeline(model, location); });
}

/// Of the archive, with those that stand beside others, in this order up to `last`: for each device
/// with series, thread whose process defines counters, thread that waits, communicator of NCCL.
uint64_t Assembly::location_count_with(Beside last) const {
  const Model& model = parts_->model;
  uint64_t count = device_series_count(model);
  for (const Location& location : model.locations) {
    if (!location.in_archive) continue;
    ++count;
    const bool is_thread = location.type == LocationType::kThread;
    if (is_thread && last >= Beside::kCounters)
      count += defines_counters(model, model.groups[location.group]) ? 1 : 0;
    if (is_thread && last >= Beside::kWaits) ++count;
    if (last == Beside::kNcclWaits && is_nccl_timeline(model, location)) ++count;
  }
  return count;
}

/// The metrics that were found and have no room.
std::vector<std::string> Assembly::left_out_metrics(const Passed& passed) const {
  const WriterPlan plan = writer_plan();
  const nccl::LatenessSummary* late = passed.collectors.lateness->summary();
  std::vector<std::string> lines;
  const auto add = [&](const char* names, Beside last) {
    lines.push_back(fmt::format("the archive lacks {}: its locations need --otf2-locations {}",
                                names, location_count_with(last)));
  };
  if (!plan.writes_otf2) return lines;
  if (const size_t count = left_out_counter_count(parts_->model); count != 0)
    lines.push_back(fmt::format("the archive lacks {} of the {} counters at the borders of calls{}",
                                count, parts_->model.counter_count,
                                plan.writes_hdf5 ? ": profile.h5 has all" : ""));
  const auto has_counters = [](const LocationTally& tally) {
    return tally.samples != 0 && is_thread_of_process(*tally.location);
  };
  if (!plan.has_room_for_counters &&
      std::any_of(passed.tallies.begin(), passed.tallies.end(), has_counters))
    add("the counters that the program sets", Beside::kCounters);
  if (!plan.has_room_for_waits && passed.waits && !passed.waits->summary()->rows.empty())
    add("the metric \"waiting time\"", Beside::kWaits);
  const bool has_timelines =
      location_count_with(Beside::kNcclWaits) > location_count_with(Beside::kWaits);
  if (!plan.has_room_for_nccl_waits && has_timelines && late != nullptr &&
      late->table.operation_count() != 0)
    add("the metric \"NCCL waiting time\"", Beside::kNcclWaits);
  return lines;
}

WriterPlan Assembly::writer_plan() const {
  WriterPlan plan;
  // A job without a process that recorded (no MPI, no annotation) has a ledger that says so.
  const bool has_processes = !parts_->model.groups.empty();
  plan.writes_otf2 = options_.writes_otf2 && has_processes;
  plan.writes_hdf5 = options_.writes_hdf5 && has_processes;
  plan.nccl_as_mpi = options_.nccl_as_mpi;
  const uint64_t most = options_.otf2_locations;
  plan.has_room_for_devices = location_count_with(Beside::kDevices) <= most;
  plan.has_room_for_counters = location_count_with(Beside::kCounters) <= most;
  plan.has_room_for_waits = location_count_with(Beside::kWaits) <= most;
  plan.has_room_for_nccl_waits =
      plan.writes_otf2 && has_nccl() && location_count_with(Beside::kNcclWaits) <= most;
  plan.may_hang = may_hang(parts_->model);
  plan.has_devices = has(LocationType::kAcceleratorStream);
  plan.device_bytes = device_bytes_;
  plan.max_step_rows = max_step_rows_;
  plan.most_markers = most_markers_;
  return plan;
}

/// Nothing where one process does all.
std::optional<SharePlan> Assembly::share_plan(std::vector<bool>* is_elsewhere) const {
  const uint64_t record_count = parts_->load.record_count();
  if (options_.is_snapshot || parts_->model.groups.size() < 2) return std::nullopt;
  SharePlan plan;
  if (options_.share_count > 1) {
    const size_t most = std::min<size_t>(parts_->model.groups.size(), kMaxShares);
    const size_t count = std::min<size_t>(options_.share_count, most);
    plan = plan_evenly(*parts_, static_cast<uint32_t>(count));
  } else if (!options_.waiting_nodes.empty() && parts_->job.nodes.size() > 1 &&
             record_count >= options_.least_shared_records) {
    plan = plan_by_node(*parts_);
    for (const std::string& name : plan.names) {
      is_elsewhere->push_back(
          std::count(options_.waiting_nodes.begin(), options_.waiting_nodes.end(), name) != 0);
    }
  } else {
    return std::nullopt;
  }
  plan.otf2_locations = options_.otf2_locations;
  plan.writers = writer_plan();
  plan.writers.device_bytes /= plan.map.count;
  return plan;
}

Status Assembly::pass_in_shares(const fs::path& staging, Passed* passed) {
  CombineOptions options;
  const std::optional<SharePlan> plan = share_plan(&options.is_elsewhere);
  if (!plan) return pass_alone(staging, passed);
  options.staging = staging;
  options.beat = beat_;
  passed->collectors.markers.known = job_markers(*parts_, most_markers_, options_.is_snapshot);
  Status status = combine_shares(parts_.get(), *plan, options, passed);
  if (status) return status;
  const std::string why = "assembled by one process, not in shares: " + status.error().message;
  report_.warnings.push_back(why);
  passed->writers.clear();  // before what they point to
  *passed = Passed();
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(staging, ignored))
    remove_with_room(entry.path());
  return pass_alone(staging, passed);
}

/// A pass of its own, for the archive has each call's waiting beside the call, and steps are cut
/// where the loops are known. Also makes the plan of the steps.
Status Assembly::analyse_waits(const fs::path& staging, StepPlan* steps, Passed* passed) {
  std::vector<WriterSlot> slots;
  auto analysis = make_wait_analysis(staging, beat_);
  WaitAnalysis* waits = analysis.get();
  slots.push_back({"waits", std::move(analysis), {}, false});
  auto finder = make_step_finder();
  StepFinder* found = finder.get();
  slots.push_back({"steps", std::move(finder), {}, false});
  Status status = EventPass(*parts_, slots, beat_, EventPass::kWithoutDevices).run();
  if (!status) return status;
  if (slots[1].status) *steps = found->plan();
  if (!slots[0].status) {
    passed->collectors.lacks.push_back("waits: " + slots[0].status.error().message);
    return {};  // with its temporary file, which may fill the disk
  }
  static_cast<void>(slots[0].writer.release());
  passed->waits.reset(waits);
  passed->remarks = cover_violations(waits->summary()->clock_violations, &parts_->model);
  return {};
}

Status Assembly::pass_alone(const fs::path& staging, Passed* passed) {
  const WriterPlan plan = writer_plan();
  StepPlan steps;
  if (plan.writes_otf2 || plan.writes_hdf5) {
    Status status = analyse_waits(staging, &steps, passed);
    if (!status) return status;
  }
  passed->collectors.markers.known = job_markers(*parts_, most_markers_, options_.is_snapshot);
  passed->writers =
      make_writers(staging, plan, passed->waits.get(), std::move(steps), &passed->collectors);
  EventPass pass(*parts_, passed->writers, beat_, plan.device_bytes);
  Status status = pass.run(passed->waits ? passed->waits->summary()->alike_failure_count : 0);
  if (!status) return status;
  passed->outcome = pass.outcome();
  passed->tallies = pass.tallies();
  passed->left_out = pass.left_out_spans();
  return {};
}

Status Assembly::convert(const fs::path& staging) {
  Passed passed;
  Status status = pass_in_shares(staging, &passed);
  if (!status) return status;
  add_warnings(passed.remarks);
  add_warnings(left_out_lines(passed.left_out));
  status = collect_failures(staging, passed.writers, passed.collectors.lacks, &report_);
  if (!status) return status;
  report_.outcome = passed.outcome;
  add_law_warning(passed.tallies, &report_.warnings);
  for (const LocationTally& tally : passed.tallies) {
    report_.record_count += tally.decoded;
    report_.lost_count += tally.lost_count();
  }
  return write_the_ledger(staging, passed);
}

Status Assembly::write_the_ledger(const fs::path& staging, const Passed& passed) {
  const Collectors& collectors = passed.collectors;
  LedgerFacts facts;
  facts.model = &parts_->model;
  facts.clocks = parts_->clocks;
  facts.tallies = passed.tallies;
  facts.outcome = passed.outcome;
  if (const WriterPlan plan = writer_plan(); plan.writes_otf2)
    facts.outcome.communication_complete =
        has_all_communication(parts_->model, passed.outcome, plan.nccl_as_mpi);
  facts.findings = collectors.findings->lines(passed.tallies);
  if (collectors.hangs != nullptr) {
    const HangReport& report = collectors.hangs->report();
    facts.hangs = hang_lines(parts_->model, report, parts_->model.end_ns);
    const std::string finding = hang_finding(parts_->model, report);
    // Losses stand first: they qualify all the rest.
    const bool has_losses = report_.lost_count != 0 && !facts.findings.empty();
    if (!finding.empty())
      facts.findings.insert(facts.findings.begin() + (has_losses ? 1 : 0), finding);
  }
  facts.totals = &collectors.totals->totals();
  if (const std::string errors = gpu_errors_finding(parts_->model, *facts.totals); !errors.empty())
    facts.findings.insert(facts.findings.begin(), errors);
  if (const std::string death = death_finding(parts_->model, parts_->clocks); !death.empty())
    facts.findings.insert(facts.findings.begin(), death);
  if (facts.findings.size() > kMaxFindings) facts.findings.resize(kMaxFindings);
  facts.warnings = report_.warnings;
  facts.failures = report_.failures;
  facts.left_out = collectors.notes.left_out;
  facts.left_out_metrics = left_out_metrics(passed);
  facts.marker_count = collectors.markers.written_count;
  facts.left_out_markers = collectors.markers.left_out_counts;
  facts.waits = passed.waits ? passed.waits->summary() : nullptr;
  facts.functions = collectors.findings->functions();
  facts.steps = collectors.steps->summary();
  facts.disk_used_bytes = folder_bytes(staging) + folder_bytes(folder_ / "spool");
  facts.assembly_seconds = seconds();
  facts.share_count = passed.share_count;
  facts.replaced_count = passed.replaced_count;
  facts.is_snapshot = options_.is_snapshot;
  facts.missing_node_count = missing_node_count_;
  facts.lost_nodes = options_.lost_nodes;
  return write_ledger(staging / "aon.json", facts);
}

}  // namespace

Result<AssembleReport> assemble(const fs::path& folder, const AssembleOptions& options,
                                AssemblyLease* lease) {
  return Assembly(folder, options, lease).run();
}

Result<AssembleReport> assemble(const fs::path& folder, const AssembleOptions& options) {
  const Result<std::unique_ptr<AssemblyLease>> lease = AssemblyLease::take(folder);
  return lease ? assemble(folder, options, lease->get()) : lease.error();
}

}  // namespace aon::writers
