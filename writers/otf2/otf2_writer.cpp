#include "writers/otf2/otf2_writer.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "writers/otf2/archive.h"
#include "writers/otf2/definitions.h"
#include "writers/otf2/device_series.h"
#include "writers/otf2/device_windows.h"
#include "writers/otf2/events.h"
#include "writers/otf2/guard.h"
#include "writers/otf2/marker_file.h"
#include "writers/otf2/markers.h"
#include "writers/otf2/nccl_events.h"
#include "writers/otf2/nccl_timelines.h"
#include "writers/otf2/nccl_waits.h"
#include "writers/otf2/window.h"
#include "writers/otf2/written.h"

namespace aon::writers {
namespace {

using otf2::check;

constexpr uint64_t kTextBytes = 65536;  ///< of the longest name or binding

class Otf2Writer final : public Writer {
 public:
  Otf2Writer(std::filesystem::path folder, WaitAnalysis* waits, bool nccl_as_mpi,
             nccl::LatenessAnalysis* lateness, std::vector<std::string>* lacks, bool has_counters,
             const MarkerPlan& plan, bool has_devices)
      : folder_(std::move(folder)),
        waits_(waits),
        nccl_as_mpi_(nccl_as_mpi),
        has_counters_(has_counters),
        has_devices_(has_devices),
        nccl_waits_(lateness),
        lacks_(lacks),
        markers_(plan.most),
        job_markers_(plan.job) {}

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;

 private:
  Status open_file();
  Status take_device_series(std::span<const Event>* events);
  Status write_timeline(std::span<const Event> events);
  Status close_file(OTF2_EvtWriter** file, const Location& location);
  Status write_samples();
  std::vector<uint32_t> counter_columns() const;
  size_t counter_column_count() const {
    return std::min<size_t>(model_->counter_count, otf2::kMaxClassMembers);
  }
  void add_beside(uint64_t bit, const char* name);
  Status write_waiting();
  bool has_waits() const { return waits_ != nullptr && waits_->summary() != nullptr; }
  double clock_error_ns(uint32_t node) const;
  Status write_local_files();
  Status write_properties(const Outcome& outcome);
  Status write_markers(const otf2::GlobalDefinitions& definitions);
  void tell_lacks() const;
  bool must_exist() const;

  std::filesystem::path folder_;
  WaitAnalysis* waits_;
  bool nccl_as_mpi_;
  bool has_counters_;
  bool has_devices_;
  const Model* model_ = nullptr;
  otf2::ArchiveHandle archive_;
  otf2::EventEncoder encoder_;
  std::optional<otf2::NcclTimelines> timelines_;  ///< from begin() on
  std::optional<otf2::NcclEncoder> nccl_encoder_;
  const Location* location_ = nullptr;      ///< null: not in the archive
  OTF2_EvtWriter* file_ = nullptr;          ///< made with the first event
  OTF2_EvtWriter* counter_file_ = nullptr;  ///< made with the first sample on a thread
  otf2::Window window_;
  std::vector<otf2::WrittenLocation> written_;
  std::deque<Location> beside_;  ///< METRIC locations beside threads; written_ points at them
  otf2::DeviceWindows device_windows_;
  otf2::DeviceSeries device_series_;
  std::vector<Event> own_events_;  ///< of a batch that has series of devices, too
  bool has_waiting_ = false;
  std::string waiting_failure_;  ///< why some of it is missing; "": all was read
  otf2::NcclWaits nccl_waits_;
  std::vector<std::string>* lacks_;
  otf2::Markers markers_;
  std::optional<otf2::EventMarkers> event_markers_;  ///< from begin() on
  otf2::JobMarkers* job_markers_;                    ///< null: nothing is known but events
  bool is_combined_ = false;                         ///< the event files are those of shares
  otf2::TimeRange range_{std::numeric_limits<uint64_t>::max(), 0};
};

Status Otf2Writer::begin(const Model& model) {
  model_ = &model;
  timelines_.emplace(model, nccl_as_mpi_);
  nccl_encoder_.emplace(model, *timelines_);
  if (has_devices_) device_series_.begin(model);
  event_markers_.emplace(model, &markers_);
  Result<otf2::ArchiveHandle> archive = otf2::create_archive(
      folder_, otf2::largest_definition_bytes(model, *timelines_) + kTextBytes);
  if (!archive) return archive.error();
  archive_ = std::move(archive).value();
  return check(OTF2_Archive_OpenEvtFiles(archive_.get()), "create the folder of event files");
}

Status Otf2Writer::begin_location(const Location& location) {
  location_ = location.in_archive ? &location : nullptr;
  file_ = nullptr;
  counter_file_ = nullptr;
  window_.begin_location(model_->archive_start_ns);
  event_markers_->begin_location(location);
  return {};
}

Status Otf2Writer::open_file() {
  file_ = OTF2_Archive_GetEvtWriter(archive_.get(), location_->id);
  if (file_ == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create an event file"};
  const bool is_thread = location_->type == LocationType::kThread;
  encoder_.begin(file_, is_thread, *model_, location_->group);
  if (is_thread) encoder_.set_counters(counter_columns(), counter_column_count());
  if (is_nccl_timeline(*model_, *location_)) {
    nccl_encoder_->begin(file_, *location_);
  } else if (otf2::is_of_device(*location_)) {
    encoder_.set_device(device_windows_.add_stream(*location_));
  }
  return {};
}

/// Of a communicator of NCCL: only its operations; that they are regions is for profiles.
Status Otf2Writer::write_timeline(std::span<const Event> events) {
  for (const Event& event : events) {
    OTF2_ErrorCode code = OTF2_SUCCESS;
    if (event.kind == EventKind::kNcclBegin) code = nccl_encoder_->begin_operation(event);
    if (event.kind == EventKind::kNcclEnd) code = nccl_encoder_->end_operation(event);
    if (code != OTF2_SUCCESS) return check(code, "write an operation of NCCL");
  }
  return {};
}

/// Of the counters of the location's process.
std::vector<uint32_t> Otf2Writer::counter_columns() const {
  const Group& group = model_->groups[location_->group];
  std::vector<uint32_t> columns;
  for (uint32_t i = 0; i < kMaxRegionCounters; ++i) {
    const auto metric = group.metric_map.find(kFirstCounterMetric + i);
    if (metric == group.metric_map.end()) break;
    columns.push_back(metric->second);
  }
  return columns;
}

Status Otf2Writer::close_file(OTF2_EvtWriter** file, const Location& location) {
  uint64_t event_count = 0;
  Status status = check(OTF2_EvtWriter_GetNumberOfEvents(*file, &event_count), "count events");
  if (!status) return status;
  written_.push_back({&location, event_count});
  status = check(OTF2_Archive_CloseEvtWriter(archive_.get(), *file), "write an event file");
  *file = nullptr;
  return status;
}

/// A METRIC location beside the thread's.
void Otf2Writer::add_beside(uint64_t bit, const char* name) {
  beside_.push_back(*location_);
  beside_.back().id |= bit;
  beside_.back().type = LocationType::kMetric;
  beside_.back().name = name + location_->name;
}

/// The counters that a thread sets. Not on the thread itself, for the same reason as its waiting.
Status Otf2Writer::write_samples() {
  for (const Event& sample : encoder_.take_samples()) {
    if (!has_counters_) break;
    if (counter_file_ == nullptr) {
      counter_file_ =
          OTF2_Archive_GetEvtWriter(archive_.get(), location_->id | otf2::kCounterLocation);
      if (counter_file_ == nullptr)
        return Error{Code::kIo, "OTF2 archive: cannot create an event file"};
    }
    Status status = check(otf2::EventEncoder::write_sample(
                              counter_file_, sample, otf2::metric_class(*model_, sample.region)),
                          "write Metric");
    if (!status) return status;
  }
  return {};
}

/// The waiting of the location's calls, summed up, where each of them begins and ends. Not on the
/// location itself: readers expect a metric there at every Enter and Leave, or none.
Status Otf2Writer::write_waiting() {
  const auto index = static_cast<uint32_t>(location_ - model_->locations.data());
  OTF2_ErrorCode code = OTF2_SUCCESS;
  double waited_s = 0;
  uint64_t last_ns = 0;
  const auto tell = [&](uint64_t time_ns) {
    const OTF2_Type type = OTF2_TYPE_DOUBLE;
    OTF2_MetricValue value;
    value.floating_point = waited_s;
    const uint32_t metric = otf2::metric_class(*model_, otf2::wait_metric(*model_));
    if (code != OTF2_SUCCESS) return;
    code = OTF2_EvtWriter_Metric(file_, nullptr, time_ns, metric, 1, &type, &value);
  };
  for (;;) {
    const Result<std::optional<CallWait>> next = waits_->next_call(index);
    if (!next) {
      waiting_failure_ = next.error().message;
      waits_ = nullptr;  // the rest of the archive is worth more
    }
    if (!next || !*next) break;
    const CallWait& call = **next;
    if (call.enter_ns < last_ns) continue;
    last_ns = call.leave_ns;
    if (call.enter_ns < model_->archive_start_ns) {
      waited_s += static_cast<double>(call.wait_ns) * 1e-9;
      continue;
    }
    if (file_ == nullptr) {
      file_ = OTF2_Archive_GetEvtWriter(archive_.get(), location_->id | otf2::kWaitingLocation);
      if (file_ == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create an event file"};
    }
    tell(call.enter_ns);
    waited_s += static_cast<double>(call.wait_ns) * 1e-9;
    tell(call.leave_ns);
  }
  if (file_ == nullptr) return {};
  if (code != OTF2_SUCCESS) return check(code, "write Metric");
  has_waiting_ = true;
  add_beside(otf2::kWaitingLocation, "Waiting time: ");
  return close_file(&file_, beside_.back());
}

/// Writes the samples of devices on their own locations; the rest stays in `events`.
Status Otf2Writer::take_device_series(std::span<const Event>* events) {
  const auto is_taken = [&](const Event& event) { return device_series_.takes(event); };
  if (std::none_of(events->begin(), events->end(), is_taken)) return {};
  own_events_.clear();
  for (const Event& event : *events) {
    if (!is_taken(event)) {
      own_events_.push_back(event);
      continue;
    }
    Status status = device_series_.write(archive_.get(), *location_, event,
                                         otf2::metric_class(*model_, event.region));
    if (!status) return status;
  }
  *events = own_events_;
  return {};
}

Status Otf2Writer::events(std::span<const Event> all_events) {
  if (location_ == nullptr) event_markers_->add(all_events);
  if (location_ == nullptr) return {};
  std::span<const Event> events = window_.filter(all_events);
  if (events.empty()) return {};
  event_markers_->add(events);
  range_.start_ns = std::min(range_.start_ns, events.front().time_ns);
  range_.end_ns = std::max(range_.end_ns, events.back().time_ns);
  if (const Event& last = events.back(); last.kind == EventKind::kDeviceGap)
    range_.end_ns = std::max(range_.end_ns, last.time_ns + last.bytes_received);
  if (location_->type == LocationType::kMetric) {
    Status status = take_device_series(&events);
    if (!status || events.empty()) return status;
  }
  if (file_ == nullptr) {
    Status status = open_file();
    if (!status) return status;
  }
  if (is_nccl_timeline(*model_, *location_)) return write_timeline(events);
  Status status = encoder_.write(events);
  return status ? write_samples() : status;
}

/// A process must have its master thread: viewers take the location's id as the rank. A member of a
/// communicator of NCCL must have its timeline.
bool Otf2Writer::must_exist() const {
  if (is_nccl_timeline(*model_, *location_)) return true;
  return location_->type == LocationType::kThread && location_->id == location_->group;
}

Status Otf2Writer::end_location() {
  if (location_ == nullptr) return {};
  if (encoder_.copy_count() != 0 && file_ != nullptr) device_windows_.note_copies(location_->group);
  if (Status status = device_series_.end_location(archive_.get(), *location_, &written_); !status)
    return status;
  uint64_t event_count = 0;
  if (file_ != nullptr) OTF2_EvtWriter_GetNumberOfEvents(file_, &event_count);
  if (event_count == 0) {
    if (file_ == nullptr && !must_exist()) return {};
    Status status = file_ == nullptr ? open_file() : Status();
    if (!status) return status;
    const uint64_t start_ns = std::max(model_->start_ns, model_->archive_start_ns);
    const uint64_t end_ns = std::max(start_ns, model_->end_ns);
    status = encoder_.write_no_records(start_ns, end_ns);
    if (!status) return status;
    range_.start_ns = std::min(range_.start_ns, start_ns);
    range_.end_ns = std::max(range_.end_ns, end_ns);
  }
  Status status = close_file(&file_, *location_);
  if (status && counter_file_ != nullptr) {
    add_beside(otf2::kCounterLocation, "Counters: ");
    status = close_file(&counter_file_, beside_.back());
  }
  if (!status || !has_waits()) return status;
  return write_waiting();
}

/// Times are corrected already, so the offset is 0 and this its standard deviation: infinite where
/// nobody compared the clock.
double Otf2Writer::clock_error_ns(uint32_t node) const {
  if (node >= model_->clock_error_ns.size()) return 0;
  const uint64_t error_ns = model_->clock_error_ns[node];
  if (error_ns == kUnknownClockError) return std::numeric_limits<double>::infinity();
  return static_cast<double>(error_ns);
}

Status Otf2Writer::write_local_files() {
  Status status = check(OTF2_Archive_OpenDefFiles(archive_.get()), "create local definitions");
  const otf2::GroupIds groups(*model_, *timelines_);
  for (const otf2::WrittenLocation& written : written_) {
    if (!status) return status;
    const std::string name = std::to_string(written.location->id) + ".evt";
    std::error_code ignored;
    if (is_combined_ && !std::filesystem::exists(folder_ / "traces" / name, ignored))
      return Error{Code::kIo, "OTF2 archive: no share has left " + name};
    OTF2_DefWriter* file = OTF2_Archive_GetDefWriter(archive_.get(), written.location->id);
    if (file == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create a definition file"};
    const Group& group = model_->groups[written.location->group];
    status = otf2::write_local_definitions(file, *model_, *timelines_, device_windows_, groups,
                                           *written.location, range_, clock_error_ns(group.node));
    if (!status) return status;
    status = check(OTF2_Archive_CloseDefWriter(archive_.get(), file), "write local definitions");
  }
  if (!status) return status;
  return check(OTF2_Archive_CloseDefFiles(archive_.get()), "write local definitions");
}

Status Otf2Writer::write_properties(const Outcome& outcome) {
  const bool complete = has_all_communication(*model_, outcome, nccl_as_mpi_);
  Status status = check(OTF2_Archive_SetBoolProperty(
                            archive_.get(), "OTF2::MPI_COMMUNICATION_COMPLETE", complete, true),
                        "set a property");
  if (!status) return status;
  status = check(OTF2_Archive_SetProperty(archive_.get(), "AON::VERSION", AON_VERSION, true),
                 "set a property");
  if (!status || model_->clock_error_ns.empty()) return status;
  const uint64_t error_ns =
      *std::max_element(model_->clock_error_ns.begin(), model_->clock_error_ns.end());
  const std::string text = error_ns == kUnknownClockError ? "unknown" : std::to_string(error_ns);
  return check(OTF2_Archive_SetProperty(archive_.get(), "AON::CLOCK_ERROR_NS", text.c_str(), true),
               "set a property");
}

/// The event files stay where they are: whoever combines the shares moves them.
Status Otf2Writer::save(StateOut* out) {
  out->put(uint64_t{written_.size()});
  for (const otf2::WrittenLocation& written : written_) save_written(*model_, written, out);
  out->put(range_);
  out->put(has_waiting_);
  out->put(std::exchange(waiting_failure_, {}));
  device_windows_.save(out);
  markers_.save(out);
  written_.clear();
  return {};
}

Status Otf2Writer::load(StateIn* in) {
  uint64_t count = 0;
  if (!in->get(&count)) return in->status();
  for (uint64_t i = 0; i < count; ++i) {
    if (Status status = load_written(in, *model_, &beside_, &written_); !status) return status;
  }
  is_combined_ = true;
  otf2::TimeRange range{};
  bool has_waiting = false;
  std::string failure;
  if (!in->get(&range) || !in->get(&has_waiting) || !in->get(&failure)) return in->status();
  if (!failure.empty()) waiting_failure_ = failure;
  range_.start_ns = std::min(range_.start_ns, range.start_ns);
  range_.end_ns = std::max(range_.end_ns, range.end_ns);
  has_waiting_ = has_waiting_ || has_waiting;
  Status status = device_windows_.load(in);
  return status ? markers_.load(in) : status;
}

void Otf2Writer::tell_lacks() const {
  if (lacks_ == nullptr) return;
  if (!waiting_failure_.empty())
    lacks_->push_back("the archive lacks waiting times: " + waiting_failure_);
  if (!nccl_waits_.failure().empty())
    lacks_->push_back("the archive lacks NCCL waiting times: " + nccl_waits_.failure());
}

Status Otf2Writer::write_markers(const otf2::GlobalDefinitions& definitions) {
  if (job_markers_ != nullptr) markers_.take(std::exchange(job_markers_->known, otf2::Markers()));
  Status status = otf2::write_markers(archive_.get(), markers_, range_, definitions);
  if (!status || job_markers_ == nullptr) return status;
  job_markers_->written_count = markers_.count();
  job_markers_->left_out_counts = otf2::left_out_counts(markers_);
  return {};
}

Status Otf2Writer::finish(const Outcome& outcome) {
  if (range_.start_ns > range_.end_ns) range_ = {model_->start_ns, model_->end_ns};
  const uint32_t nccl_metric = otf2::nccl_wait_metric(*model_, has_waiting_);
  Status status = nccl_waits_.write(archive_.get(), *model_,
                                    otf2::metric_class(*model_, nccl_metric), range_, &written_);
  if (!status) return status;
  tell_lacks();
  status = check(OTF2_Archive_CloseEvtFiles(archive_.get()), "write event files");
  if (!status) return status;
  status = write_local_files();
  if (!status) return status;
  OTF2_GlobalDefWriter* file = OTF2_Archive_GetGlobalDefWriter(archive_.get());
  if (file == nullptr) return Error{Code::kIo, "OTF2 archive: cannot create traces.def"};
  otf2::GlobalDefinitions definitions(file, *model_, *timelines_, device_windows_,
                                      {has_waiting_, !nccl_waits_.is_empty()});
  status = definitions.write(written_, range_);
  if (!status) return status;
  status = check(OTF2_Archive_CloseGlobalDefWriter(archive_.get(), file), "write traces.def");
  if (status) status = write_markers(definitions);
  if (!status) return status;
  status = write_properties(outcome);
  if (!status) return status;
  return check(OTF2_Archive_Close(archive_.release()), "write traces.otf2");
}

}  // namespace

std::unique_ptr<Writer> make_otf2_writer(const std::filesystem::path& folder, WaitAnalysis* waits,
                                         bool nccl_as_mpi, nccl::LatenessAnalysis* lateness,
                                         std::vector<std::string>* lacks, bool has_counters,
                                         const MarkerPlan& markers, bool has_devices) {
  return otf2::guard(std::make_unique<Otf2Writer>(folder, waits, nccl_as_mpi, lateness, lacks,
                                                  has_counters, markers, has_devices));
}

uint64_t device_series_count(const Model& model) {
  const auto has_series = [](const Location& location) {
    return location.type == LocationType::kMetric && location.in_archive;
  };
  if (std::none_of(model.locations.begin(), model.locations.end(), has_series)) return 0;
  otf2::DeviceSeries series;
  series.begin(model);
  return series.device_count();
}

size_t left_out_counter_count(const Model& model) {
  return model.counter_count - std::min<size_t>(model.counter_count, otf2::kMaxClassMembers);
}

bool has_all_communication(const Model& model, const Outcome& outcome, bool nccl_as_mpi) {
  if (!outcome.communication_complete || model.archive_start_ns != 0) return false;
  return std::all_of(model.locations.begin(), model.locations.end(), [&](const Location& location) {
    if (location.type == LocationType::kSamples || location.type == LocationType::kMetric)
      return true;
    // Of NCCL nobody has looked whether each operation has all of its parts.
    return location.in_archive && !(nccl_as_mpi && is_nccl_timeline(model, location));
  });
}

}  // namespace aon::writers
