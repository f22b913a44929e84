#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "writers/devices/borders.h"
#include "writers/devices/calls.h"
#include "writers/devices/device_pass.h"
#include "writers/devices/devices.h"
#include "writers/devices/external_ids.h"
#include "writers/devices/launch_rows.h"
#include "writers/devices/launched_work.h"
#include "writers/devices/missing_launches.h"
#include "writers/devices/nccl_kernels.h"
#include "writers/devices/region_kinds.h"
#include "writers/devices/step_times.h"
#include "writers/devices/summary.h"
#include "writers/devices/unit_use.h"
#include "writers/devices/unrecorded_times.h"
#include "writers/profile/local_ids.h"

namespace aon::writers {
namespace {

using devices::Borders;
using devices::Call;
using devices::CallId;
using devices::DevicePass;
using devices::ExternalIdTotals;
using devices::Item;
using devices::Launch;
using devices::LaunchedItem;
using devices::LaunchedWork;
using devices::LaunchRows;
using devices::MissingLaunches;
using devices::NcclKernels;
using devices::UnrecordedTimes;

constexpr uint32_t kNoGroup = 0xffffffffu;

class Analysis : public DeviceAnalysis {
 public:
  Analysis(std::filesystem::path folder, const StepMeter* steps, uint64_t max_file_bytes)
      : steps_(steps), work_(std::move(folder), max_file_bytes) {}

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;
  void add_nccl_listener(NcclListener listener) override {
    nccl_listeners_.push_back(std::move(listener));
  }
  const DeviceSummary& summary() const override { return summary_; }

 private:
  enum class Row : uint8_t { kNone, kThread, kDevice, kCalls, kMetrics };
  /// How many the summary has.
  struct Rows {
    size_t uses;
    size_t steps;
  };

  void begin_group(const Group& group);
  void begin_thread(const Location& location);
  void note_loss(const Event& event);
  void add_border(const Event& event);
  Status add_call(const Event& event, uint32_t region, uint64_t start_ns, uint64_t end_ns);
  Status add_ids(const Event& call, uint64_t start_ns);
  Status add_work(const Event& event);
  Status finish_group();
  Status finish_nccl();
  void number_loops();
  uint32_t device_of(uint32_t communicator) const;
  Status finish_work(const MissingLaunches& missing, LaunchedWork::Reader* reader);
  void add_item(const LaunchedItem& launched, DevicePass* pass);
  void finish_device(DevicePass* pass, const std::vector<const StepRow*>& steps);
  Rows rows() const { return {summary_.uses.size(), summary_.steps.size()}; }
  void add_units(const Rows& before, const Group* passed = nullptr);
  void mark_missing(const MissingLaunches& missing, const Rows& before);

  const StepMeter* steps_;
  const Model* model_ = nullptr;
  devices::RegionKinds kinds_;
  DeviceSummary summary_;
  devices::UnitUses units_;
  std::vector<NcclListener> nccl_listeners_;

  // Of the process.
  const Group* group_ = nullptr;
  bool has_devices_ = false;
  profile::LocalIds regions_;
  LaunchedWork work_;
  devices::Captures captures_;
  UnrecordedTimes unrecorded_;
  std::map<uint32_t, Borders> borders_;  ///< by thread id of the system
  size_t border_count_ = 0;
  NcclKernels nccl_;
  LaunchRows launches_;
  ExternalIdTotals external_ids_;

  // Of the location.
  Row row_ = Row::kNone;
  uint32_t device_ = kNoDevice;
  uint32_t thread_ = 0;
  Borders* thread_borders_ = nullptr;
  std::vector<ExternalId> next_ids_;  ///< of the call that comes
  bool writes_device_records_ = false;
};

Status Analysis::begin(const Model& model) {
  model_ = &model;
  units_.begin(model);
  kinds_.begin(model);
  launches_.begin(model);
  return {};
}

void Analysis::begin_group(const Group& group) {
  group_ = &group;
  has_devices_ = group.process != nullptr && !group.process->device_streams.empty();
  if (!has_devices_) return;
  regions_ = profile::LocalIds(group.region_map);
  launches_.begin_process(*group.process);
}

void Analysis::begin_thread(const Location& location) {
  const auto found = group_->process->streams.find({location.slot, 0});
  if (found == group_->process->streams.end()) return;
  row_ = Row::kThread;
  const auto tid = static_cast<uint32_t>(found->second.tid);
  thread_borders_ = &borders_[tid];
  const auto name = group_->process->thread_names.find(tid);
  writes_device_records_ =
      name != group_->process->thread_names.end() && name->second == kDeviceRecordsThread;
}

Status Analysis::begin_location(const Location& location) {
  const Group& group = model_->groups[location.group];
  if (group_ != &group) {
    if (Status status = finish_group(); !status) return status;
    begin_group(group);
  }
  row_ = Row::kNone;
  writes_device_records_ = false;
  if (location.type == LocationType::kMetric) {
    row_ = Row::kMetrics;
    units_.begin_location(group.node);
  }
  if (!has_devices_) return {};
  if (location.type == LocationType::kThread) begin_thread(location);
  if (location.type != LocationType::kAcceleratorStream) return {};
  if (is_nccl_timeline(*model_, location)) return {};  // its operations are no calls of CUDA
  device_ = location.device;
  row_ = device_ != kNoDevice ? Row::kDevice : Row::kCalls;
  const auto stream = group.process->device_streams.find(location.device_stream);
  if (stream != group.process->device_streams.end()) thread_ = stream->second.definition.stream;
  return {};
}

/// What the thread lost that writes the records of devices is their work. These come in no order of
/// time, so when their neighbours were says nothing.
void Analysis::note_loss(const Event& event) {
  if (event.kind != EventKind::kLostBegin) return;
  GapCause cause = GapCause::kUnknown;
  const auto reason = static_cast<LossReason>(event.region);
  if (reason == LossReason::kPoolFull) cause = GapCause::kRing;
  if (reason == LossReason::kEvictedByCap) cause = GapCause::kLeftOut;
  unrecorded_.add(event.request, event.bytes_received, cause);
}

/// Annotations only: a call of MPI launches nothing.
void Analysis::add_border(const Event& event) {
  if (event.kind != EventKind::kEnter && event.kind != EventKind::kLeave) return;
  const uint32_t region = regions_.global(event.region);
  if (region >= model_->regions.size()) return;
  const RegionRole role = model_->regions[region].role;
  if (role != RegionRole::kUser && role != RegionRole::kStep) return;
  if (++border_count_ > kMaxBorders) {
    thread_borders_->close(event.time_ns);
  } else if (event.kind == EventKind::kEnter) {
    thread_borders_->enter(event.time_ns, region);
  } else {
    thread_borders_->leave(event.time_ns);
  }
}

/// One that did nothing, for it failed, has no correlation id, as what is not recorded.
Status Analysis::add_call(const Event& event, uint32_t region, uint64_t start_ns, uint64_t end_ns) {
  const uint32_t timeline = 2 * thread_ + (kinds_.is_of_runtime(region) ? 1 : 0);
  if (event.device_correlation() == 0) {
    const GapCause* gap = kinds_.gap_of(region);
    if (gap == nullptr) return {};
    unrecorded_.add(start_ns, end_ns, *gap);
    if (*gap == GapCause::kBudget) captures_.note_rest();
  } else if (kinds_.begins_capture(region)) {
    captures_.add({start_ns, timeline, true});
  } else if (kinds_.ends_capture(region)) {
    captures_.add({end_ns, timeline, false});
  } else {
    return work_.add(Call{event.device_correlation(), thread_, kinds_.launches_graph(region),
                          kinds_.launches_kernel(region), start_ns, end_ns});
  }
  return {};
}

Status Analysis::add_ids(const Event& call, uint64_t start_ns) {
  for (const ExternalId& id : std::exchange(next_ids_, {})) {
    Status status = work_.add(CallId{call.device_correlation(), id.kind, start_ns, id.id});
    if (!status) return status;
  }
  return {};
}

Status Analysis::add_work(const Event& event) {
  const DeviceOperation operation = event.device_operation();
  const uint64_t start_ns = event.device_start_ns();
  const uint64_t end_ns = start_ns + event.device_duration_ns();
  const uint32_t region = regions_.global(event.region);
  if (row_ == Row::kCalls) {
    if (const auto id = external_id_of(event)) next_ids_.push_back(*id);
    if (operation != DeviceOperation::kOther) return {};
    if (Status status = add_ids(event, start_ns); !status) return status;
    return add_call(event, region, start_ns, end_ns);
  }
  Item item{};
  item.start_ns = start_ns;
  item.end_ns = end_ns;
  item.device = device_;
  item.correlation = event.device_correlation();
  item.region = region;
  item.is_kernel = operation == DeviceOperation::kKernel;
  const bool is_copy = operation == DeviceOperation::kCopy || operation == DeviceOperation::kSet;
  item.work = is_copy                           ? WorkClass::kCopy
              : kinds_.is_communication(region) ? WorkClass::kCommunication
                                                : WorkClass::kCompute;
  return work_.add(item);
}

Status Analysis::end_location() {
  if (row_ == Row::kMetrics) units_.end_location();
  return {};
}

Status Analysis::events(std::span<const Event> events) {
  if (row_ == Row::kMetrics) {
    for (const Event& event : events) {
      if (event.kind == EventKind::kSample) units_.add(event);
    }
    return {};
  }
  if (row_ == Row::kNone) return {};
  for (const Event& event : events) {
    if (row_ == Row::kThread) {
      add_border(event);
      if (writes_device_records_) note_loss(event);
      if (event.kind == EventKind::kNcclCall)
        nccl_.add_operation(event.nccl(), device_of(event.nccl().communicator));
    } else if (event.kind == EventKind::kDeviceGap) {
      unrecorded_.add(event.time_ns, event.request, GapCause::kLeftOut);
    } else if (event.kind == EventKind::kDeviceWork) {
      if (Status status = add_work(event); !status) return status;
    }
  }
  return {};
}

uint32_t Analysis::device_of(uint32_t communicator) const {
  const auto& all = group_->process->communicators;
  const auto found = all.find(communicator);
  const uint8_t told = found != all.end() ? found->second.definition.reserved[kNcclDevice] : 0;
  return told != 0 ? told - 1u : kNoDevice;
}

void Analysis::add_item(const LaunchedItem& launched, DevicePass* pass) {
  const Item& item = launched.item;
  const Call* call = launched.known_call();
  const Launch launch = call != nullptr ? Launch{call->start_ns, call->end_ns} : Launch{0, 0};
  pass->sweep.add({item.start_ns, item.end_ns, item.work}, launch);
  if (item.is_kernel) pass->add_kernel(item.end_ns - item.start_ns, call);
  if (call == nullptr) ++pass->unknown_launch_count;
  if (call != nullptr && item.is_kernel && item.work == WorkClass::kCommunication)
    nccl_.add_kernel({call->start_ns, item.start_ns, item.end_ns, item.device});
  uint32_t from = LaunchRow::kNoLaunchRegion;
  if (call != nullptr) {
    const auto thread = borders_.find(call->thread);
    if (thread != borders_.end()) from = thread->second.region_at(call->start_ns);
  }
  LaunchRow& row = launches_.row_of(item.device, item.region, from);
  ++row.count;
  row.total_ns += item.end_ns - item.start_ns;
  if (call == nullptr) return;
  ++row.known_count;
  row.delay_ns += item.start_ns - std::min(item.start_ns, call->end_ns);
}

void Analysis::finish_device(DevicePass* pass, const std::vector<const StepRow*>& steps) {
  pass->sweep.finish();
  DeviceUse use;
  use.group = group_->id;
  use.device = pass->device;
  use.times = pass->sweep.total();
  for (size_t i = 0; i < kIdleReasonCount; ++i)
    use.idle[i] = pass->sweep.idle(static_cast<IdleReason>(i));
  use.kernel_count = pass->kernels.count();
  use.median_kernel_ns = pass->kernels.value();
  use.median_launch_ns = pass->launches.value();
  use.unknown_launch_count = pass->unknown_launch_count;
  use.begin_ns = pass->sweep.first_ns();
  use.bound = bound_of(use.times, pass->median_launched_ns(), use.median_launch_ns);
  summary_.uses.push_back(use);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (summary_.steps.size() == kMaxSteps) {
      summary_.left_out_step_count += steps.size() - i;
      break;
    }
    DeviceStep step = devices::step_of(*steps[i], *pass, i, unrecorded_.all());
    step.bound = bound_of(step.times, pass->median_launched_ns(), use.median_launch_ns,
                          kLeastRecordedOfStep);
    summary_.steps.push_back(step);
  }
}

/// Device by device, in order of time.
Status Analysis::finish_work(const MissingLaunches& missing, LaunchedWork::Reader* reader) {
  const std::vector<const StepRow*> steps = devices::steps_of_group(steps_, group_->id);
  std::optional<DevicePass> pass;
  for (;;) {
    const Result<const LaunchedItem*> launched = reader->next();
    if (!launched) return launched.error();
    const bool is_last = *launched == nullptr;
    if (pass && (is_last || pass->device != (*launched)->item.device)) {
      finish_device(&*pass, steps);
      pass.reset();
    }
    if (is_last) return {};
    if (!pass)
      pass.emplace((*launched)->item.device, devices::windows_of(steps), unrecorded_.all().all(),
                   missing.all());
    add_item(**launched, &*pass);
  }
}

Status Analysis::finish_group() {
  if (work_.has_no_room()) ++summary_.left_out_count;
  summary_.left_out_call_count += work_.left_out_call_count();
  summary_.left_out_external_count += work_.left_out_id_count();
  const Rows before = rows();
  unrecorded_.merge();
  if (work_.has_work()) {
    MissingLaunches missing;
    Result<LaunchedWork::Reader> reader = work_.join(captures_, &missing, &external_ids_);
    if (!reader) return reader.error();
    if (Status status = finish_work(missing, &*reader); !status) return status;
    summary_.joined_launch_count += launches_.add_rows(group_->id, &summary_.launches);
    devices::add_external_ids(external_ids_.rows(group_->id), &summary_);
    summary_.left_out_external_count += external_ids_.left_out_call_count();
    mark_missing(missing, before);
    work_.clear();  // its memory is needed now
    if (Status status = finish_nccl(); !status) return status;
  }
  if (has_devices_ && group_ != nullptr) {
    unrecorded_.add_rows(group_->id, &summary_.unrecorded);
    add_units(before, group_);
  }
  work_.clear();
  captures_.clear();
  unrecorded_.clear();
  borders_.clear();
  border_count_ = 0;
  launches_.clear();
  external_ids_.clear();
  nccl_.clear();
  return {};
}

/// Times with many launches whose kernels are not there have no verdict. What is missing before the
/// first kernel and behind the last is of the use as well.
void Analysis::mark_missing(const MissingLaunches& missing, const Rows& before) {
  if (missing.is_empty()) return;
  const auto mark = [&](auto* row, uint64_t begin_ns, uint64_t end_ns) {
    row->missing_launch_count = missing.count(begin_ns, end_ns);
    if (missing.are_many(begin_ns, end_ns)) row->bound = Bound::kUnrecorded;
  };
  for (size_t i = before.uses; i < summary_.uses.size(); ++i)
    mark(&summary_.uses[i], 0, UINT64_MAX);
  for (size_t i = before.steps; i < summary_.steps.size(); ++i) {
    DeviceStep& step = summary_.steps[i];
    mark(&step, step.begin_ns, step.begin_ns + step.times.span_ns);
  }
}

Status Analysis::finish_nccl() {
  const auto& communicators = group_->communicator_map;
  Status status = nccl_.join([&](const devices::TimedOperation& one) -> Status {
    for (const NcclListener& listener : nccl_listeners_) {
      if (Status told = listener(one); !told) return told;
    }
    if (summary_.nccl.size() == kMaxNcclRows) {
      ++summary_.left_out_nccl_count;
      return {};
    }
    const auto communicator = communicators.find(one.communicator);
    NcclTime& row = summary_.nccl.emplace_back();
    row.group = group_->id;
    row.device = one.device;
    if (communicator != communicators.end()) row.communicator = communicator->second;
    row.region = regions_.global(one.region);
    row.call = one.call;
    row.shared_by = one.shared_by;
    row.sequence = one.sequence;
    row.bytes = one.bytes;
    row.start_ns = one.start_ns;
    row.gpu_ns = one.gpu_ns;
    return {};
  });
  if (!status) return status;
  summary_.unmatched_nccl_count += nccl_.unmatched_count();
  summary_.left_out_nccl_count += nccl_.left_out_count();
  return {};
}

/// Loops have other numbers than while the steps passed.
void Analysis::number_loops() {
  const StepSummary* steps = steps_ != nullptr ? steps_->summary() : nullptr;
  if (steps == nullptr) return;
  for (DeviceStep& step : summary_.steps) {
    if (step.loop < steps->final_loops.size()) step.loop = steps->final_loops[step.loop];
  }
}

/// Those of the last process have their final numbers.
Status Analysis::finish(const Outcome&) {
  number_loops();
  Status status = finish_group();
  add_units({});  // a process with a file of its own may come before the series of its machine
  return status;
}

/// The rows behind those that were there `before`, of a process that has `passed` or of all, get
/// what counters say, as far as they are here: in a share another one may have them, for load().
void Analysis::add_units(const Rows& before, const Group* passed) {
  const auto add = [](const devices::UnitUses::Device& device, auto* row) {
    if (row->units.counted_ns != 0) return;
    row->units = device.use_of(row->begin_ns, row->begin_ns + row->times.span_ns);
    row->bound = bound_of(row->bound, row->units);
  };
  const std::vector<Group>& groups = model_->groups;
  for (size_t i = before.uses; i < summary_.uses.size(); ++i)
    add(units_.find(groups[summary_.uses[i].group], summary_.uses[i].device), &summary_.uses[i]);
  devices::UnitUses::Device device;
  std::pair<uint32_t, uint32_t> last(kNoGroup, 0);
  for (size_t i = before.steps; i < summary_.steps.size(); ++i) {
    DeviceStep& step = summary_.steps[i];
    const std::pair own(step.group, step.device);
    if (std::exchange(last, own) != own) device = units_.find(groups[step.group], step.device);
    add(device, &step);
  }
  if (passed != nullptr) units_.pass(*passed);
}

Status Analysis::save(StateOut* out) {
  const uint32_t id = group_ != nullptr && has_devices_ ? group_->id : kNoGroup;
  if (Status status = finish_group(); !status) return status;
  group_ = nullptr;
  has_devices_ = false;
  out->put(id);
  units_.save(out);
  devices::save_summary(out, std::exchange(summary_, {}));
  return {};
}

Status Analysis::load(StateIn* in) {
  uint32_t id = kNoGroup;
  if (!in->get(&id)) return in->status();
  if (Status status = units_.load(in); !status) return status;
  const Rows before = rows();
  if (Status status = devices::add_saved(in, *model_, &summary_); !status) return status;
  if (id == kNoGroup) return {};
  const bool is_known = id < model_->groups.size() && model_->groups[id].process != nullptr;
  if (!in->check(is_known)) return in->status();
  add_units(before, &model_->groups[id]);
  return {};
}

}  // namespace

std::unique_ptr<DeviceAnalysis> make_device_analysis(const std::filesystem::path& folder,
                                                     const StepMeter* steps,
                                                     uint64_t max_file_bytes) {
  return std::make_unique<Analysis>(folder, steps, max_file_bytes);
}

}  // namespace aon::writers
