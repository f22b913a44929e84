#include "writers/hdf5/gpu_use.h"

#include <limits>
#include <string>

#include "writers/devices/device_names.h"
#include "writers/hdf5/column.h"

namespace aon::writers::hdf5 {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The columns that say whose device it is.
struct OwnerColumns {
  explicit OwnerColumns(Table* table)
      : rank(table->add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"})),
        process(table->add<uint32_t>("process", {"1", "row of /ranks"})),
        device(table->add<uint32_t>("device", {"1", "ordinal of the device in its process"})) {}

  void append(const Model& model, uint32_t group, uint32_t ordinal) {
    const Group& of = model.groups[group];
    rank.append(of.rank ? int64_t{*of.rank} : -1);
    process.append(of.id);
    device.append(ordinal);
  }

  Column<int64_t>& rank;
  Column<uint32_t>& process;
  Column<uint32_t>& device;
};

/// What it did, and why not.
struct TimesColumns {
  explicit TimesColumns(Table* table, const char* span_text)
      : span(table->add<uint64_t>("span_ns", {"ns", span_text})),
        busy(table->add<uint64_t>("busy_ns", {"ns", "of it with work"})),
        idle(table->add<uint64_t>("idle_ns", {"ns", "of it without"})),
        compute(table->add<uint64_t>("compute_ns", {"ns", "busy with kernels and graphs"})),
        copy(table->add<uint64_t>("copy_ns", {"ns", "busy with copies and sets of memory"})),
        communication(table->add<uint64_t>("communication_ns", {"ns", "busy with NCCL"})),
        overlap(table->add<uint64_t>("overlap_ns", {"ns", "communication beside computing"})),
        exposed(table->add<uint64_t>("exposed_ns", {"ns", "communication without computing"})),
        only_copy(table->add<uint64_t>("only_copy_ns", {"ns", "copies with nothing beside them"})),
        host_wait(table->add<uint64_t>(
            "host_wait_ns", {"ns", "idle until the host called the launch of the next work"})),
        launch(table->add<uint64_t>(
            "launch_ns", {"ns", "idle while that call ran, and on its way, 10 us at most"})),
        starved(table->add<uint64_t>("starved_ns", {"ns", "idle though it was launched"})),
        unrecorded(table->add<uint64_t>(
            "unrecorded_ns", {"ns", "without work, but nothing was recorded for a part of it"})),
        bound(table->add_text("bound",
                              {"", "what keeps it from going faster, docs/gpu-bounds.md"})) {}

  void append(const DeviceTimes& times, Bound what) {
    const auto of = [&](WorkClass work) { return times.class_ns[static_cast<size_t>(work)]; };
    const auto why = [&](IdleReason reason) { return times.idle_ns[static_cast<size_t>(reason)]; };
    span.append(times.span_ns);
    busy.append(times.busy_ns);
    idle.append(times.span_ns - std::min(times.span_ns, times.busy_ns));
    compute.append(of(WorkClass::kCompute));
    copy.append(of(WorkClass::kCopy));
    communication.append(of(WorkClass::kCommunication));
    overlap.append(times.overlap_ns);
    exposed.append(times.exposed_ns);
    only_copy.append(times.only_copying_ns);
    host_wait.append(why(IdleReason::kHostWait));
    launch.append(why(IdleReason::kLaunch));
    starved.append(why(IdleReason::kStarved));
    unrecorded.append(why(IdleReason::kUnrecorded));
    bound.append(bound_name(what));
  }

  Column<uint64_t>& span;
  Column<uint64_t>& busy;
  Column<uint64_t>& idle;
  Column<uint64_t>& compute;
  Column<uint64_t>& copy;
  Column<uint64_t>& communication;
  Column<uint64_t>& overlap;
  Column<uint64_t>& exposed;
  Column<uint64_t>& only_copy;
  Column<uint64_t>& host_wait;
  Column<uint64_t>& launch;
  Column<uint64_t>& starved;
  Column<uint64_t>& unrecorded;
  TextColumn& bound;
};

constexpr const char* kMissingText =
    "launches of kernels by the process, for any device, of which there is no kernel; those within "
    "captures of graphs do not count";

/// What counters of its units say; NaN where there are none.
struct UnitColumns {
  explicit UnitColumns(Table* table)
      : counted(table->add<uint64_t>("counted_ns", {"ns", "of the span with counters of the GPU"})),
        sm(table->add<double>("sm_active", {"1", "multiprocessors with work, mean"})),
        occupancy(table->add<double>("sm_occupancy", {"1", "warps, of the most there can be"})),
        compute(table->add<double>("compute_use", {"1", "of the pipe that was used most, mean"})),
        memory(table->add<double>("memory_use", {"1", "of the memory's bandwidth, mean"})) {}

  void append(const UnitUse& units) {
    const auto known = [&](float value) { return units.counted_ns != 0 ? double{value} : kNan; };
    counted.append(units.counted_ns);
    sm.append(known(units.sm_active));
    occupancy.append(known(units.occupancy));
    compute.append(known(units.compute));
    memory.append(known(units.memory));
  }

  Column<uint64_t>& counted;
  Column<double>& sm;
  Column<double>& occupancy;
  Column<double>& compute;
  Column<double>& memory;
};

void write_use(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "use", "what each device did, and why it did nothing");
  OwnerColumns owner(&table);
  auto& uuid = table.add_text("uuid", {"", "of the device, \"\" unknown"});
  TimesColumns times(&table, "from the first work to the end of the last");
  auto& kernels = table.add<uint64_t>("kernels", {"1", "how many kernels"});
  auto& kernel = table.add<uint64_t>("median_kernel_ns", {"ns", "time of one, within 10 %"});
  auto& launch = table.add<uint64_t>(
      "median_launch_ns", {"ns", "of the calls that launched one each, 0 unknown; within 10 %"});
  auto& unknown = table.add<uint64_t>("unknown_launches", {"1", "work whose launch is not known"});
  auto& missing = table.add<uint64_t>("missing_launches", {"1", kMissingText});
  UnitColumns units(&table);
  for (const DeviceUse& use : devices.uses) {
    owner.append(model, use.group, use.device);
    uuid.append(aon::writers::devices::uuid_text(model.groups[use.group], use.device));
    times.append(use.times, use.bound);
    units.append(use.units);
    kernels.append(use.kernel_count);
    kernel.append(use.median_kernel_ns);
    launch.append(use.median_launch_ns);
    unknown.append(use.unknown_launch_count);
    missing.append(use.missing_launch_count);
  }
  table.finish();
  set_attribute(table.group(), "left_out", static_cast<int64_t>(devices.left_out_count));
  set_attribute(table.group(), "left_out_calls", static_cast<int64_t>(devices.left_out_call_count));
}

void write_idle(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "idle", "times in which a device had nothing to do, by what it waited for");
  OwnerColumns owner(&table);
  auto& reason =
      table.add_text("reason", {"", "host wait, launch, starved, unknown, not recorded"});
  auto& count = table.add<uint64_t>("count", {"1", "how often"});
  auto& total = table.add<uint64_t>("total_ns", {"ns", "all of them"});
  auto& longest = table.add<uint64_t>("max_ns", {"ns", "the longest"});
  for (const DeviceUse& use : devices.uses) {
    for (size_t i = 0; i < kIdleReasonCount; ++i) {
      owner.append(model, use.group, use.device);
      reason.append(idle_reason_name(static_cast<IdleReason>(i)));
      count.append(use.idle[i].count);
      total.append(use.times.idle_ns[i]);
      longest.append(use.idle[i].max_ns);
    }
  }
  table.finish();
}

void write_steps(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "steps", "what each device did in each step of its process (/steps)");
  OwnerColumns owner(&table);
  auto& loop = table.add<uint32_t>("loop", {"1", "entry of the attribute loops of /steps"});
  auto& step = table.add<int64_t>("step", {"1", "number of the step, -1 unknown"});
  auto& begin = table.add<uint64_t>("begin_ns", {"ns", "begin, nanoseconds since 1970"});
  TimesColumns times(&table, "from the begin to the end of the step, on the host");
  UnitColumns units(&table);
  auto& missing = table.add<uint64_t>("missing_launches", {"1", kMissingText});
  for (const DeviceStep& row : devices.steps) {
    owner.append(model, row.group, row.device);
    loop.append(row.loop);
    step.append(row.number);
    begin.append(row.begin_ns);
    times.append(row.times, row.bound);
    units.append(row.units);
    missing.append(row.missing_launch_count);
  }
  table.finish();
  set_attribute(table.group(), "left_out", static_cast<int64_t>(devices.left_out_step_count));
}

std::string name_of(const Model& model, uint32_t region) {
  return region < model.regions.size() ? model.regions[region].name : std::string();
}

/// Beside the runtime's "(more names)", which is one name for many.
constexpr const char* kMoreAnnotations = "(more annotations)";
constexpr const char* kMoreWork = "(more work)";

void write_launches(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "launches", "work by what it is and the annotation it was launched from");
  OwnerColumns owner(&table);
  auto& name = table.add_text("name", {"", "of the kernel, or the kind of other work"});
  auto& from = table.add_text("from", {"", "innermost annotation of the launching thread"});
  auto& count = table.add<uint64_t>("count", {"1", "how often"});
  auto& total = table.add<uint64_t>("total_ns", {"ns", "time of all of them on the device"});
  auto& known = table.add<uint64_t>("known_launches", {"1", "whose launch is known"});
  auto& delay = table.add<double>(
      "mean_delay_ns", {"ns", "from the end of the launch to the begin of the work, of those"});
  for (const LaunchRow& row : devices.launches) {
    owner.append(model, row.group, row.device);
    const bool is_more = row.region == LaunchRow::kMoreWork;
    name.append(is_more ? kMoreWork : name_of(model, row.region));
    const bool is_other = row.from == LaunchRow::kMoreLaunchRegions;
    from.append(is_other ? kMoreAnnotations : name_of(model, row.from));
    count.append(row.count);
    total.append(row.total_ns);
    known.append(row.known_count);
    delay.append(row.known_count == 0
                     ? 0
                     : static_cast<double>(row.delay_ns) / static_cast<double>(row.known_count));
  }
  table.finish();
  set_attribute(table.group(), "joined", static_cast<int64_t>(devices.joined_launch_count));
}

void write_nccl_times(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "nccl",
              "operations of NCCL with the times of their kernel, by the call that launched it");
  OwnerColumns owner(&table);
  auto& communicator = table.add_text("communicator", {"", "its name"});
  auto& name = table.add_text("name", {"", "the function"});
  auto& call = table.add<uint64_t>("call", {"1", "as in /nccl/operations"});
  auto& sequence = table.add<uint64_t>("sequence", {"1", "as in /nccl/operations"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "as in /nccl/operations"});
  auto& start = table.add<uint64_t>("gpu_start_ns", {"ns", "nanoseconds since 1970"});
  auto& duration = table.add<uint64_t>("gpu_ns", {"ns", "time of the kernel"});
  auto& shared = table.add<uint32_t>("shared_by", {"1", "operations of the same kernel"});
  for (const NcclTime& row : devices.nccl) {
    owner.append(model, row.group, row.device);
    communicator.append(row.communicator < model.communicators.size()
                            ? model.communicators[row.communicator].name
                            : std::string());
    name.append(name_of(model, row.region));
    call.append(row.call);
    sequence.append(row.sequence);
    bytes.append(row.bytes);
    start.append(row.start_ns);
    duration.append(row.gpu_ns);
    shared.append(row.shared_by);
  }
  table.finish();
  set_attribute(table.group(), "unmatched", static_cast<int64_t>(devices.unmatched_nccl_count));
  set_attribute(table.group(), "left_out", static_cast<int64_t>(devices.left_out_nccl_count));
}

void write_external_ids(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "external_ids",
              "calls of CUDA by the external correlation ids that the program gave them");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& kind = table.add_text("kind", {"", "UNKNOWN, OPENACC, CUSTOM0, CUSTOM1, CUSTOM2"});
  auto& id = table.add<uint64_t>("id", {"1", "as the program pushed it"});
  auto& calls = table.add<uint64_t>("calls", {"1", "calls of CUDA with it"});
  auto& count = table.add<uint64_t>("count", {"1", "pieces of work that these launched"});
  auto& total = table.add<uint64_t>("total_ns", {"ns", "time of all of them on the device"});
  for (const ExternalIdRow& row : devices.external_ids) {
    const Group& of = model.groups[row.group];
    rank.append(of.rank ? int64_t{*of.rank} : -1);
    process.append(of.id);
    kind.append(external_kind_name(row.kind));
    id.append(row.id);
    calls.append(row.call_count);
    count.append(row.count);
    total.append(row.total_ns);
  }
  table.finish();
  set_attribute(table.group(), "left_out", static_cast<int64_t>(devices.left_out_external_count));
}

void write_unrecorded(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  Table table(gpu, "unrecorded", "times in which work of a process may be missing, by cause");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& cause = table.add_text("cause", {"", "docs/gpu-missing.md"});
  auto& count = table.add<uint64_t>("count", {"1", "how often"});
  auto& total = table.add<uint64_t>("total_ns", {"ns", "all of them"});
  auto& process_total = table.add<uint64_t>(
      "process_ns", {"ns", "for any cause in the process: causes may be at the same time"});
  for (const UnrecordedTime& row : devices.unrecorded) {
    const Group& of = model.groups[row.group];
    rank.append(of.rank ? int64_t{*of.rank} : -1);
    process.append(of.id);
    cause.append(gap_name(row.cause));
    count.append(row.count);
    total.append(row.total_ns);
    process_total.append(row.process_ns);
  }
  table.finish();
}

}  // namespace

void write_gpu_use(hid_t gpu, const Model& model, const DeviceSummary& devices) {
  write_use(gpu, model, devices);
  write_idle(gpu, model, devices);
  if (!devices.steps.empty()) write_steps(gpu, model, devices);
  write_launches(gpu, model, devices);
  if (!devices.external_ids.empty() || devices.left_out_external_count != 0)
    write_external_ids(gpu, model, devices);
  if (!devices.unrecorded.empty()) write_unrecorded(gpu, model, devices);
  if (!devices.nccl.empty() || devices.unmatched_nccl_count != 0)
    write_nccl_times(gpu, model, devices);
}

std::string left_out_text(const DeviceSummary& devices) {
  if (devices.left_out_call_count == 0) return {};
  return "which of " + std::to_string(devices.left_out_call_count) +
         " CUDA calls launched which work is not known: below --disk there is no room to sort them";
}

std::string joined_text(const DeviceSummary& devices) {
  if (devices.joined_launch_count == 0) return {};
  return "/gpu/launches has the work that took most time of each process: " +
         std::to_string(devices.joined_launch_count) + " others are \"" + kMoreWork +
         "\" of theirs";
}

}  // namespace aon::writers::hdf5
