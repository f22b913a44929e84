// hdf5_sample FILE | --one-host FILE | --no-ranks FILE | --shares FILE | --slurm DIR FILE: writes a
// profile.h5 of a small job whose figures the tests beside it know, in one piece, with both nodes
// on one host, without MPI or in two shares that are combined, or exports DIR/profile.h5. The job:
// two nodes, three ranks and a process without a rank, two communicators, samples of three
// providers, and something of all else that comes from events.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "core/spool/format.h"
#include "core/topology/topology.h"
#include "tests/unit/profile/one_rank.h"
#include "tests/unit/writers/feed_group.h"
#include "writers/hdf5/hdf5_share.h"
#include "writers/hdf5/hdf5_writer.h"
#include "writers/hdf5/slurm_export.h"

namespace aon::writers {
namespace {

constexpr uint64_t kStartNs = 1'763'700'000'000'000'000u;
constexpr uint64_t kTickNs = 100'000'000;
constexpr int kTicks = 50;

spool::Job make_job() {
  spool::Job job{};
  job.nodes.resize(2);
  for (int n = 0; n < 2; ++n) {
    spool::Node& node = job.nodes[static_cast<size_t>(n)];
    node.host = "node" + std::to_string(n);
    node.launch_id = "job-1";
    node.definition.clock_is_tsc = 1;
    node.clock = {{0, 0, kStartNs, 52},
                  {2'600'000'000, 1'000'000'000, kStartNs + 1'000'000'000, 26}};
    for (uint32_t p = 0; p < 2; ++p) {
      spool::Process& process = node.processes[p];
      process.start.process = p;
      process.start.pid = 1000 + 10 * n + static_cast<int>(p);
      process.program = "/bin/demo";
      process.binding = "0-1";
      process.exit = ProcessExitDefinition{p, 0, n == 1 ? 9 : 0, 0, 0, 4096, 77};
      process.counts[{1, 3}] = 1000 + p;
      process.devices[0] = {{}, "GPU", "0000:17:00.0"};
      process.sampled_event = "cpu-clock";
    }
  }
  job.nodes[0].folder = "spool/node0";
  job.nodes[1].clock_pings = {{{100, 7, 8, 140}, "node0"}, {{200, 9, 10, 240}, "gone"}};
  const Result<topology::Topology> machine = topology::Topology::load();
  if (machine) job.nodes[0].topology_xml = machine.value().xml().value();
  return job;
}

Model make_job_model(const spool::Job& job) {
  Model model = test::make_model(4);
  model.clock_error_ns = {10, 10};
  model.job = &job;
  model.start_ns = kStartNs;
  model.end_ns = kStartNs + kTicks * kTickNs;
  model.regions[10].name = "MPI_Send";
  model.regions[10].role = RegionRole::kPointToPoint;
  model.regions[10].paradigm = Paradigm::kMpi;
  model.regions[9].name = "solve \xc3\xbc \xff";  // one byte is no UTF-8
  model.communicators.push_back({"pair", CommunicatorKind::kIntra, 0u, {2, -1}});
  model.windows.push_back({"halo", 0, WindowFlavour::kShared});
  model.file_names.push_back("out.dat");
  model.files.push_back({0, 0, 0});
  model.functions.push_back({"main", "main.c", "/bin/demo"});
  model.functions.push_back({"solve", "main.c", "/bin/demo"});
  model.call_paths.push_back({{}, 0, 1, 0});
  model.call_paths.push_back({0, 1, 2, 1});
  for (Group& group : model.groups) {
    group.window_map[5] = 0;
    group.file_map[4] = 0;
    group.call_path_map = {{20, 0}, {21, 1}};
    group.metric_map[kFirstCounterMetric] = 3;
  }
  model.groups[3].rank.reset();
  model.communicators[0].members.pop_back();
  for (uint32_t g = 0; g < 4; ++g) {
    model.groups[g].node = g / 2;
    model.groups[g].process = &job.nodes[g / 2].processes.at(g % 2);
  }
  model.metrics.push_back(
      {"task-clock", "ns", "CPU time", "perf", MetricMode::kAccumulated, false});
  model.metrics.push_back(
      {"perf::cycles", "1", "CPU cycles", "perf", MetricMode::kAccumulated, false});
  model.metrics.push_back({"load", "1", "runnable tasks", "example", MetricMode::kAbsolute, true});
  model.metrics.push_back(
      {"counters::cycles", "1", "CPU cycles", "counters", MetricMode::kAccumulated, false});
  model.metrics.push_back(
      {"nvml::gpu_GPU-5d2c/nvml/power", "W", "power", "nvml", MetricMode::kAbsolute, true});
  model.counter_count = 1;
  for (uint32_t g = 0; g < 3; ++g) {
    model.locations.push_back({(uint64_t{100} << 32) | g, g, LocationType::kMetric, "perf", g % 2,
                               spool::kSeriesSlot, true});
  }
  for (uint32_t g = 0; g < 4; ++g) {
    model.locations.push_back({(uint64_t{102} << 32) | g, g, LocationType::kAcceleratorStream,
                               "stream", g % 2, spool::kSeriesSlot, true, 1, 0});
  }
  // Both nodes see the GPU, and so do both shares.
  for (const uint32_t g : {1u, 2u}) {
    model.locations.push_back({(uint64_t{101} << 32) | g, g, LocationType::kMetric, "node",
                               spool::kNodeProcess, spool::kSeriesSlot, true});
  }
  std::stable_sort(model.locations.begin(), model.locations.end(),
                   [](const Location& a, const Location& b) { return a.group < b.group; });
  return model;
}

Event sample(int tick, uint32_t metric, double value, uint64_t enabled_ns, uint64_t running_ns) {
  Event e{};
  e.kind = EventKind::kSample;
  e.time_ns = kStartNs + static_cast<uint64_t>(tick) * kTickNs;
  e.region = metric;
  e.bytes = std::bit_cast<uint64_t>(value);
  e.request = enabled_ns;
  e.bytes_received = running_ns;
  return e;
}

/// A fetch-and-op of 8 bytes at rank 0.
Event fetch(uint64_t time_ns) {
  Event e{};
  e.kind = EventKind::kRmaTransfer;
  e.time_ns = time_ns;
  e.communicator = 5;
  e.tag = static_cast<int32_t>(RmaOperation::kFetchAndOp);
  e.bytes = e.bytes_received = 8;
  return e;
}

/// A write of 64 bytes, of the call that is open.
void add_write(uint64_t time_ns, std::vector<Event>* events) {
  for (const EventKind kind : {EventKind::kIoBegin, EventKind::kIoComplete}) {
    Event e = test::event(kind, time_ns, 0);
    e.communicator = 4;
    e.peer = static_cast<int32_t>(IoOperation::kWrite);
    e.tag = 0;
    events->push_back(e);
  }
}

Event call_sample(uint64_t time_ns, uint32_t path) {
  Event e = test::event(EventKind::kCallSample, time_ns, path);
  e.peer = 77;
  e.bytes = 1'000'000;
  return e;
}

Event counted(uint64_t time_ns, uint64_t cycles) {
  Event e = test::event(EventKind::kCounters, time_ns, 0);
  const uint64_t values[kMaxRegionCounters] = {cycles};
  e.set_counters(values, 1, true);
  return e;
}

/// The operation lives as long as the program.
void add_nccl(uint64_t time_ns, std::vector<Event>* events) {
  static NcclOperation operation;
  operation.start_ns = kStartNs;
  operation.end_ns = kStartNs + 500;
  operation.bytes = 4096;
  operation.gpu_ns = 300;
  operation.flags = kNcclGpuTimed;
  operation.communicator = 7;
  static NcclProxyWork work;
  work.communicator = 7;
  work.bytes = 4096;
  work.end_ns = 100;
  work.peer = 1;
  Event e = test::event(EventKind::kNcclCall, time_ns, 0);
  e.request = reinterpret_cast<uint64_t>(&operation);
  events->push_back(e);
  e.kind = EventKind::kNcclProxy;
  e.request = reinterpret_cast<uint64_t>(&work);
  events->push_back(e);
}

/// Rank r: r + 1 kernels of region 2 and a copy.
std::vector<Event> device_work(uint32_t rank) {
  std::vector<Event> events;
  for (uint32_t i = 0; i <= rank + 1; ++i) {
    const bool is_copy = i > rank;
    Event e = test::event(EventKind::kDeviceWork, kStartNs + i, 2);
    e.peer = static_cast<int32_t>(is_copy ? DeviceOperation::kCopy : DeviceOperation::kKernel);
    e.bytes = is_copy ? 256 : 0;
    e.bytes_received = 100 + i;
    events.push_back(e);
  }
  return events;
}

/// Rank r: r + 1 sends of 10 bytes and 100 ns each to rank 0 and a fetch, inside one call of region
/// 1, which writes, is sampled and counts cycles, and something of NCCL.
std::vector<Event> calls(uint32_t rank) {
  std::vector<Event> events = {counted(kStartNs, 10), test::enter(kStartNs, 1)};
  add_write(kStartNs, &events);
  for (uint32_t i = 0; i <= rank; ++i) {
    const uint64_t start_ns = kStartNs + 1000 * (i + 1);
    events.push_back(test::enter(start_ns, 0));
    events.push_back(test::send(start_ns, 0, 10));
    events.push_back(test::leave(start_ns + 100, 0));
  }
  events.push_back(fetch(kStartNs + 90'000));
  events.push_back(call_sample(kStartNs + 91'000, 20 + rank % 2));
  events.push_back(call_sample(kStartNs + 92'000, 21));
  add_nccl(kStartNs + 93'000, &events);
  events.push_back(counted(kStartNs + 100'000, 10 + 100 * (rank + 1)));
  events.push_back(test::leave(kStartNs + 100'000, 1));
  return events;
}

std::vector<Event> samples(const Location& location) {
  std::vector<Event> events;
  for (int tick = 0; tick < kTicks; ++tick) {
    if (location.process == spool::kNodeProcess) {
      if (location.group == 2) events.push_back(sample(tick, 2, 0.5 * tick, 0, 0));
      events.push_back(sample(tick, 4, 100.0 * location.group + tick, 0, 0));
      continue;
    }
    const double cpu_ns = 0.9 * tick * static_cast<double>(kTickNs);
    events.push_back(sample(tick, 0, cpu_ns, 1000, 1000));
    if (tick >= 10) events.push_back(sample(tick, 1, 1e6 * tick, 1000, tick < 20 ? 1000 : 500));
  }
  return events;
}

#define CHECK(call)                                                              \
  do {                                                                           \
    const Status status = (call);                                                \
    if (!status) {                                                               \
      std::fprintf(stderr, "hdf5_sample: %s\n", status.error().message.c_str()); \
      return 1;                                                                  \
    }                                                                            \
  } while (false)

std::vector<Event> events_of(const Location& location) {
  if (location.type == LocationType::kMetric) return samples(location);
  if (location.type == LocationType::kAcceleratorStream) return device_work(location.group);
  return calls(location.group);
}

Outcome outcome_of(const Model& model) {
  Outcome outcome;
  for (const Location& location : model.locations)
    outcome.event_count += events_of(location).size();
  outcome.communication_complete = true;
  return outcome;
}

enum class Sample { kWhole, kOneHost, kNoRanks };

int write_sample(const char* path, Sample kind) {
  spool::Job job = make_job();
  if (kind == Sample::kOneHost) job.nodes[1].host = job.nodes[0].host;
  Model model = make_job_model(job);
  if (kind == Sample::kNoRanks) {
    for (Group& group : model.groups) group.rank.reset();
  }
  const std::unique_ptr<Writer> writer = make_hdf5_writer(path);
  CHECK(writer->begin(model));
  for (const Group& group : model.groups)
    CHECK(test::feed_group(writer.get(), model, group, events_of));
  CHECK(writer->finish(outcome_of(model)));
  return 0;
}

/// Ranks 0 and 2, and 1 and the other process.
int write_shares(const std::filesystem::path& path) {
  const spool::Job job = make_job();
  const Model model = make_job_model(job);
  const std::filesystem::path folder = path.parent_path() / "series";
  std::unique_ptr<Writer> shares[2];
  for (int i = 0; i < 2; ++i) {
    const std::string name = "node" + std::to_string(i) + ".h5";
    shares[i] = make_hdf5_share(folder / name, "series/" + name);
    CHECK(shares[i]->begin(model));
  }
  std::vector<std::string> saved;
  for (const Group& group : model.groups) {
    Writer* share = shares[group.id % 2].get();
    CHECK(test::feed_group(share, model, group, events_of));
    StateOut out;
    CHECK(share->save(&out));
    saved.push_back(out.bytes());
  }
  const std::unique_ptr<Writer> writer = make_hdf5_writer(path);
  CHECK(writer->begin(model));
  for (const std::string& bytes : saved) {
    StateIn in(bytes);
    CHECK(writer->load(&in));
  }
  CHECK(writer->finish(outcome_of(model)));
  return 0;
}

}  // namespace
}  // namespace aon::writers

int main(int argc, char** argv) {
  using aon::writers::Sample;
  if (argc == 2) return aon::writers::write_sample(argv[1], Sample::kWhole);
  if (argc == 3 && strcmp(argv[1], "--one-host") == 0)
    return aon::writers::write_sample(argv[2], Sample::kOneHost);
  if (argc == 3 && strcmp(argv[1], "--no-ranks") == 0)
    return aon::writers::write_sample(argv[2], Sample::kNoRanks);
  if (argc == 3 && strcmp(argv[1], "--shares") == 0) return aon::writers::write_shares(argv[2]);
  if (argc != 4 || strcmp(argv[1], "--slurm") != 0) return 2;
  const aon::Status status = aon::writers::export_slurm_hdf5(argv[2], argv[3]);
  if (!status) std::fprintf(stderr, "hdf5_sample: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
