#include "writers/hdf5/hdf5_writer.h"

#include <algorithm>
#include <optional>

#include "writers/hdf5/call_paths.h"
#include "writers/hdf5/counters.h"
#include "writers/hdf5/event_sums.h"
#include "writers/hdf5/gpu.h"
#include "writers/hdf5/gpu_use.h"
#include "writers/hdf5/nccl.h"
#include "writers/hdf5/series.h"
#include "writers/hdf5/steps.h"
#include "writers/hdf5/tables.h"
#include "writers/hdf5/true_times.h"

namespace aon::writers {
namespace {

using hdf5::guard;
using profile::kHistogramBuckets;
using profile::RegionStatistics;

/// /profile, appended location by location.
class ProfileTable {
 public:
  explicit ProfileTable(hid_t file)
      : table_(file, "profile", "calls and times by rank, location and region"),
        rank_(table_.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"})),
        process_(table_.add<uint32_t>("process", {"1", "row of /ranks"})),
        location_(table_.add<uint64_t>("location", {"1", "location id, as in the OTF2 archive"})),
        region_(table_.add<uint32_t>("region", {"1", "row of /regions"})),
        count_(table_.add<uint64_t>("count", {"1", "calls"})),
        timed_count_(table_.add<uint64_t>("timed_count", {"1", "calls that were timed"})),
        inclusive_(table_.add<uint64_t>("inclusive_ns", {"ns", "time in it and what it calls"})),
        exclusive_(table_.add<uint64_t>("exclusive_ns", {"ns", "time in it alone"})),
        min_(table_.add<uint64_t>("min_ns", {"ns", "shortest call"})),
        max_(table_.add<uint64_t>("max_ns", {"ns", "longest call"})),
        bytes_(table_.add<uint64_t>("bytes", {"bytes", "sent and received by its calls"})),
        histogram_(table_.add<uint64_t, kHistogramBuckets>(
            "histogram", {"1",
                          "calls by duration: bucket b is 2^b to 2^(b+1) ns; a sampled poll is in "
                          "it as often as calls it stands for"})) {}

  void append(const Group& group, uint64_t location, std::span<const RegionStatistics> rows) {
    for (const RegionStatistics& row : rows) {
      rank_.append(group.rank ? int64_t{*group.rank} : -1);
      process_.append(group.id);
      location_.append(location);
      region_.append(row.region);
      count_.append(row.count);
      timed_count_.append(row.timed_count);
      inclusive_.append(row.inclusive_ns);
      exclusive_.append(row.exclusive_ns);
      min_.append(row.min_ns);
      max_.append(row.max_ns);
      bytes_.append(row.bytes);
      histogram_.append(row.histogram);
    }
  }

  void finish() {
    table_.finish();
    hdf5::add_duration_buckets(table_.group(), histogram_.id());
  }

 private:
  hdf5::Table table_;
  hdf5::Column<int64_t>& rank_;
  hdf5::Column<uint32_t>& process_;
  hdf5::Column<uint64_t>& location_;
  hdf5::Column<uint32_t>& region_;
  hdf5::Column<uint64_t>& count_;
  hdf5::Column<uint64_t>& timed_count_;
  hdf5::Column<uint64_t>& inclusive_;
  hdf5::Column<uint64_t>& exclusive_;
  hdf5::Column<uint64_t>& min_;
  hdf5::Column<uint64_t>& max_;
  hdf5::Column<uint64_t>& bytes_;
  hdf5::Column<uint64_t, kHistogramBuckets>& histogram_;
};

void write_messages(hid_t file, const std::vector<profile::MessageRow>& rows) {
  hdf5::Table table(file, "messages", "point-to-point messages by sender, in world ranks");
  auto& source = table.add<int64_t>("source", {"1", "row of /ranks"});
  auto& destination =
      table.add<int64_t>("destination", {"1", "row of /ranks, -1 all others together"});
  auto& count = table.add<uint64_t>("count", {"1", "messages"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "bytes sent"});
  for (const profile::MessageRow& row : rows) {
    source.append(row.source);
    destination.append(row.destination);
    count.append(row.count);
    bytes.append(row.bytes);
  }
  table.finish();
}

void write_transfers(hid_t file, const std::vector<profile::TransferRow>& rows) {
  hdf5::Table table(file, "rma", "one-sided transfers by origin, window and target");
  auto& origin = table.add<int64_t>("origin", {"1", "row of /ranks"});
  auto& window = table.add<uint32_t>("window", {"1", "row of /windows"});
  auto& target = table.add<int64_t>("target", {"1", "row of /ranks, -1 all others together"});
  auto& puts = table.add<uint64_t>("puts", {"1", "calls that write"});
  auto& gets = table.add<uint64_t>("gets", {"1", "calls that read"});
  auto& atomics = table.add<uint64_t>("atomics", {"1", "accumulate, fetch and compare calls"});
  auto& sent = table.add<uint64_t>("bytes_sent", {"bytes", "from the origin to the target"});
  auto& received = table.add<uint64_t>("bytes_received", {"bytes", "from the target back"});
  for (const profile::TransferRow& row : rows) {
    origin.append(row.origin);
    window.append(row.window);
    target.append(row.target);
    puts.append(row.sum.put_count);
    gets.append(row.sum.get_count);
    atomics.append(row.sum.atomic_count);
    sent.append(row.sum.bytes_sent);
    received.append(row.sum.bytes_received);
  }
  table.finish();
}

void write_io(hid_t file, const Model& model, const std::vector<profile::IoRow>& rows) {
  hdf5::Table table(file, "io", "what each process did with each file");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& opened = table.add<int64_t>("file", {"1", "row of /files, -1 all others together"});
  const auto add = [&table](const char* name, const char* unit, const char* text) {
    return &table.add<uint64_t>(name, {unit, text});
  };
  auto* reads = add("reads", "1", "transfers from the file");
  auto* writes = add("writes", "1", "transfers to the file");
  auto* bytes_read = add("bytes_read", "bytes", "moved by them");
  auto* bytes_written = add("bytes_written", "bytes", "moved by them");
  auto* read_ns = add("read_ns", "ns", "in calls that read, or begin to");
  auto* write_ns = add("write_ns", "ns", "in calls that write, or begin to");
  auto* other_ns =
      add("other_ns", "ns", "in calls that open, change, close, sync, seek and delete");
  auto* collective_count = add("collective_count", "1", "collective ones of reads and writes");
  auto* collective_bytes = add("collective_bytes", "bytes", "moved by them");
  for (const profile::IoRow& row : rows) {
    const Group& group = model.groups[row.group];
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(row.group);
    opened.append(row.file);
    reads->append(row.reads);
    writes->append(row.writes);
    bytes_read->append(row.bytes_read);
    bytes_written->append(row.bytes_written);
    read_ns->append(row.read_ns);
    write_ns->append(row.write_ns);
    other_ns->append(row.other_ns);
    collective_count->append(row.collective_count);
    collective_bytes->append(row.collective_bytes);
  }
  table.finish();
}

/// The rows that are polled, or those that are not.
void write_wait_rows(hdf5::Table* to, const char* wait_name, const Model& model,
                     const WaitSummary& summary, bool is_polled) {
  hdf5::Table& table = *to;
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& location = table.add<uint64_t>("location", {"1", "location id, as in the OTF2 archive"});
  auto& region = table.add<uint32_t>("region", {"1", "row of /regions"});
  auto& kind = table.add_text("kind", {"", "late sender, wait at barrier, ...: docs/waiting.md"});
  auto& count = table.add<uint64_t>("count", {"1", "calls that waited"});
  auto& wait = table.add<uint64_t>(wait_name, {"ns", "waited by all of them"});
  auto& longest = table.add<uint64_t>("max_ns", {"ns", "waited by one of them"});
  auto& uncertain =
      table.add<uint64_t>("uncertain_ns", {"ns", "of it within the error of the clocks"});
  for (const WaitRow& row : summary.rows) {
    if (row.is_polled != is_polled) continue;
    const Location& waiting = model.locations[row.location];
    const Group& group = model.groups[waiting.group];
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(group.id);
    location.append(waiting.id);
    region.append(row.region);
    kind.append(wait_kind_name(row.kind));
    count.append(row.count);
    wait.append(row.wait_ns);
    longest.append(row.max_ns);
    uncertain.append(row.uncertain_ns);
  }
  table.finish();
}

void write_waits(hid_t file, const Model& model, const WaitSummary& summary) {
  hdf5::Table polled(file, "polled", "how long polls waited at most for a partner who came late");
  write_wait_rows(&polled, "at_most_ns", model, summary, true);
  hdf5::Table table(file, "waits", "time that calls waited for a partner who came late");
  write_wait_rows(&table, "wait_ns", model, summary, false);
  const hid_t group = table.group();
  hdf5::set_attribute(group, "messages", static_cast<int64_t>(summary.message_count));
  hdf5::set_attribute(group, "unmatched_ends", static_cast<int64_t>(summary.unmatched_count));
  hdf5::set_attribute(group, "collectives", static_cast<int64_t>(summary.collective_count));
  hdf5::set_attribute(group, "collectives_left_out",
                      static_cast<int64_t>(summary.incomplete_count));
}

void write_lateness(hid_t file, const Model& model, const WaitSummary& summary) {
  const LatenessTable& lateness = summary.lateness;
  hdf5::Table table(file, "lateness", "who came late to collectives");
  auto& communicator = table.add<uint32_t>("communicator", {"1", "row of /communicators"});
  auto& region = table.add<uint32_t>("region", {"1", "row of /regions"});
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& node = table.add<uint32_t>("node", {"1", "row of /nodes"});
  auto& count = table.add<uint64_t>("count", {"1", "operations it took part in"});
  auto& last = table.add<uint64_t>("last_count", {"1", "of these, it came last"});
  auto& wait = table.add<uint64_t>("wait_ns", {"ns", "it waited for others"});
  auto& late = table.add<uint64_t>("late_count", {"1", "it came late by 10 us or more"});
  auto& shared = table.add<uint64_t>("shared_count", {"1", "of late_count: with others"});
  auto& caused = table.add<uint64_t>("caused_ns", {"ns", "its share of what others waited"});
  auto& longest = table.add<uint64_t>("max_caused_ns", {"ns", "the same in one operation"});
  auto& least = table.add<uint64_t>("least_ns", {"ns", "of the members that came last"});
  for (const LatenessRow& row : lateness.rows()) {
    const Group& group = model.groups[row.group];
    communicator.append(row.communicator);
    region.append(row.region);
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(group.id);
    node.append(group.node);
    count.append(row.count);
    last.append(row.last_count);
    late.append(row.late_count);
    shared.append(row.shared_count);
    wait.append(row.wait_ns);
    caused.append(row.caused_ns);
    longest.append(row.max_caused_ns);
    least.append(row.least_ns);
  }
  table.finish();
  const hid_t group = table.group();
  hdf5::set_attribute(group, "operations", static_cast<int64_t>(lateness.operation_count()));
  hdf5::set_attribute(group, "operations_without_clocks",
                      static_cast<int64_t>(summary.uncompared_count));
  hdf5::set_attribute(group, "members_left_out", static_cast<int64_t>(lateness.left_out_count()));
}

class Hdf5Writer : public Writer {
 public:
  Hdf5Writer(std::filesystem::path path, ProfileListener listener, const WaitSummary* waits,
             const StepMeter* steps, DeviceAnalysis* devices, nccl::LatenessAnalysis* lateness,
             ProfileNotes* notes)
      : path_(std::move(path)),
        listener_(std::move(listener)),
        waits_(waits),
        steps_(steps),
        devices_(devices),
        lateness_(lateness),
        notes_(notes) {
    hdf5::use_library();
    if (lateness != nullptr) {
      lateness->set_wait_listener([this](const nccl::OperationWait& wait) {
        if (sums_) sums_->add_nccl_wait(wait);
      });
    }
    if (devices == nullptr) return;
    devices->add_nccl_listener([this](const devices::TimedOperation& one) {
      if (sums_) sums_->add_nccl_time(one);
      return Status();
    });
  }
  ~Hdf5Writer() override {
    const hdf5::Quiet quiet;  // what is left open after an error may fail to close
    series_.reset();
    counter_table_.reset();
    table_.reset();
    file_ = hdf5::Handle();
  }

  Status begin(const Model& model) override {
    return guard(path_, [&] { begin_file(model); });
  }

  Status begin_location(const Location& location) override {
    return guard(path_, [&] {
      sums_->begin(location);
      series_->begin(location);
    });
  }

  Status events(std::span<const Event> events) override {
    return guard(path_, [&] {
      for (const Event& event : events) {
        if (event.kind == EventKind::kSample) {
          series_->add(event);
        } else {
          sums_->add(event);
        }
      }
    });
  }

  Status end_location() override {
    return guard(path_, [&] {
      sums_->end();
      series_->end();
    });
  }

  Status load(StateIn* in) override {
    Status loaded;
    Status written = guard(path_, [&] {
      loaded = sums_->load(in);
      if (loaded) loaded = series_->load(in);
    });
    return written ? loaded : written;
  }

  Status finish(const Outcome& outcome) override {
    return guard(path_, [&] { finish_file(outcome); });
  }

 private:
  void begin_file(const Model& model) {
    model_ = &model;
    file_ = hdf5::create_profile(path_);
    const hid_t file = file_.get();
    hdf5::set_attribute(file, "start_ns", static_cast<int64_t>(model.start_ns));
    hdf5::set_attribute(file, "end_ns", static_cast<int64_t>(model.end_ns));
    hdf5::write_nodes(file, model);
    hdf5::write_clock_pings(file, model);
    hdf5::write_ranks(file, model);
    hdf5::write_topology(file, model);
    hdf5::write_regions(file, model);
    hdf5::write_communicators(file, model);
    hdf5::write_windows(file, model);
    hdf5::write_files(file, model);
    table_.emplace(file);
    if (model.counter_count != 0) counter_table_.emplace(file, model);
    sums_.emplace(model,
                  [this](const Location& location, hdf5::RegionRows regions,
                         hdf5::CounterRows counters) { append(location, regions, counters); });
    series_.emplace(file, model);
  }

  void append(const Location& location, hdf5::RegionRows regions, hdf5::CounterRows counters) {
    const Group& group = model_->groups[location.group];
    table_->append(group, location.id, regions);
    if (listener_ && !regions.empty()) listener_(group, &location, regions);
    if (counter_table_) counter_table_->append(group, location.id, counters);
  }

  void finish_file(const Outcome& outcome) {
    for (const profile::UncoveredCount& uncovered : profile::uncovered_counts(*model_)) {
      const uint64_t location = (uint64_t{uncovered.slot - 1} << 32) | uncovered.group->id;
      const std::span<const RegionStatistics> row(&uncovered.statistics, 1);
      table_->append(*uncovered.group, location, row);
      if (listener_) listener_(*uncovered.group, nullptr, row);
    }
    table_->finish();
    if (counter_table_) counter_table_->finish();
    sums_->finish();
    write_messages(file_.get(), sums_->messages().rows());
    const DeviceSummary* devices = devices_ != nullptr ? &devices_->summary() : nullptr;
    hdf5::write_gpu(file_.get(), *model_, sums_->device_work(), devices, outcome);
    write_transfers(file_.get(), sums_->transfers().rows());
    write_io(file_.get(), *model_, sums_->io().rows());
    hdf5::write_call_paths(file_.get(), *model_, sums_->call_samples());
    hdf5::write_nccl(file_.get(), *model_, sums_->nccl(), sums_->nccl_proxy(),
                     lateness_ != nullptr ? lateness_->summary() : nullptr);
    if (notes_ != nullptr) note_left_out();
    if (waits_ != nullptr) {
      write_waits(file_.get(), *model_, *waits_);
      write_lateness(file_.get(), *model_, *waits_);
      hdf5::write_true_times(file_.get(), "true_times", "/communicators", *model_, waits_->times,
                             waits_->times_left_out_count,
                             [](uint32_t communicator) { return int64_t{communicator}; });
    }
    const StepSummary* steps = steps_ != nullptr ? steps_->summary() : nullptr;
    if (steps != nullptr) {
      const nccl::LatenessSummary* late = lateness_ != nullptr ? lateness_->summary() : nullptr;
      const bool has_nccl = late != nullptr && late->table.operation_count() != 0;
      hdf5::write_steps(file_.get(), *model_, *steps,
                        has_nccl ? late->step_caused_ns : std::span<const uint64_t>());
    }
    hdf5::set_attribute(file_.get(), "event_count", static_cast<int64_t>(outcome.event_count));
    hdf5::set_attribute(file_.get(), "communication_complete",
                        int64_t{outcome.communication_complete});
    series_.reset();
    counter_table_.reset();
    table_.reset();
    hdf5::checked(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "cannot write the file");
    file_ = hdf5::Handle();
  }

  void note_left_out() {
    const std::string left_out = nccl::left_out_text(sums_->nccl());
    if (!left_out.empty()) notes_->left_out.push_back(left_out);
    const nccl::LatenessSummary* late = lateness_ != nullptr ? lateness_->summary() : nullptr;
    const std::string untimed = late != nullptr ? nccl::untimed_text(*late) : "";
    if (!untimed.empty()) notes_->left_out.push_back(untimed);
    const std::string calls = devices_ != nullptr ? hdf5::left_out_text(devices_->summary()) : "";
    if (!calls.empty()) notes_->left_out.push_back(calls);
    const std::string more = devices_ != nullptr ? hdf5::joined_text(devices_->summary()) : "";
    if (!more.empty()) notes_->left_out.push_back(more);
    const std::string joined = hdf5::joined_text(sums_->device_work());
    if (!joined.empty()) notes_->left_out.push_back(joined);
    notes_->proxies = nccl::sum_up(*model_, sums_->nccl_proxy());
  }

  std::filesystem::path path_;
  ProfileListener listener_;
  const WaitSummary* waits_;
  const StepMeter* steps_;
  const DeviceAnalysis* devices_;
  const nccl::LatenessAnalysis* lateness_;
  ProfileNotes* notes_;
  const Model* model_ = nullptr;
  hdf5::Handle file_;
  std::optional<ProfileTable> table_;
  std::optional<hdf5::CounterTable> counter_table_;
  std::optional<hdf5::EventSums> sums_;
  std::optional<hdf5::SeriesWriter> series_;
};

}  // namespace

std::unique_ptr<Writer> make_hdf5_writer(const std::filesystem::path& path,
                                         ProfileListener listener, const WaitSummary* waits,
                                         const StepMeter* steps, DeviceAnalysis* devices,
                                         nccl::LatenessAnalysis* lateness, ProfileNotes* notes) {
  return std::make_unique<Hdf5Writer>(path, std::move(listener), waits, steps, devices, lateness,
                                      notes);
}

}  // namespace aon::writers
