#include "writers/hdf5/nccl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "writers/hdf5/column.h"
#include "writers/hdf5/tables.h"
#include "writers/hdf5/true_times.h"
#include "writers/nccl/bandwidth.h"
#include "writers/nccl/names.h"

namespace aon::writers::hdf5 {
namespace {

using nccl::OperationRow;
using nccl::OperationTable;

constexpr double kGiga = 1e9;

template <size_t kCount>
std::vector<std::string> texts(const char* const (&names)[kCount]) {
  return {names, names + kCount};
}
const std::vector<std::string> kFlags = {"graph captured",    "gpu timed", "missed channels",
                                         "no work",           "replayed",  "copy engines",
                                         "in flight",         "abandoned", "kernel timed",
                                         "times overwritten", "uncounted"};

/// A row of another table, -1 not known.
int64_t row_of(uint32_t id, size_t count) { return id < count ? int64_t{id} : -1; }

std::string_view name_of(const Model& model, uint32_t region) {
  return region < model.regions.size() ? std::string_view(model.regions[region].name) : "";
}

uint32_t size_of(const Model& model, uint32_t communicator) {
  return communicator < model.communicators.size() ? model.communicators[communicator].rank_count
                                                   : 0;
}

/// What any member was told of its communicator, by global id.
struct Told {
  std::string id;
  uint32_t node_count = 0;
};
std::unordered_map<uint32_t, Told> told_of(const Model& model) {
  std::unordered_map<uint32_t, Told> all;
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const auto& [local, communicator] : group.process->communicators) {
      const auto global = group.communicator_map.find(local);
      if (communicator.definition.kind != CommunicatorKind::kNccl ||
          global == group.communicator_map.end())
        continue;
      Told& told = all[global->second];
      told.id = communicator.nccl_id;
      memcpy(&told.node_count, &communicator.definition.reserved[kNcclNodes],
             sizeof told.node_count);
    }
  }
  return all;
}

/// -1: it has no row there.
using Rows = std::unordered_map<uint32_t, int64_t>;

Rows write_nccl_communicators(hid_t file, const Model& model, const OperationTable& operations) {
  struct Sum {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  std::unordered_map<uint32_t, Sum> sums;
  for (const auto& [key, histogram] : operations.histograms()) {
    Sum& sum = sums[std::get<0>(key)];
    sum.count += histogram.count;
    sum.bytes += histogram.bytes;
  }
  Table table(file, "nccl/communicators", "communicators of NCCL, each once for all its ranks");
  auto& communicator = table.add<uint32_t>("communicator", {"1", "row of /communicators"});
  auto& name = table.add_text("name", {"", "as the program named it, else NCCL's commId"});
  auto& comm_id = table.add_text("comm_id", {"", "commId as in NCCL's log, empty unknown"});
  auto& size = table.add<uint32_t>("size", {"1", "ranks, 0 unknown"});
  auto& nodes = table.add<uint32_t>("nodes", {"1", "nodes it spans as NCCL says, 0 unknown"});
  auto& count = table.add<uint64_t>("operations", {"1", "of all its ranks"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "of their calls"});
  Rows rows;
  std::unordered_map<uint32_t, Told> told = told_of(model);
  for (uint32_t id = 0; id < model.communicators.size(); ++id) {
    if (model.communicators[id].kind != CommunicatorKind::kNccl) continue;
    rows[id] = static_cast<int64_t>(size.rows());
    communicator.append(id);
    name.append(model.communicators[id].name);
    comm_id.append(told[id].id);
    size.append(model.communicators[id].rank_count);
    nodes.append(told[id].node_count);
    count.append(sums[id].count);
    bytes.append(sums[id].bytes);
  }
  table.finish();
  return rows;
}

int64_t find(const Rows& rows, uint32_t communicator) {
  const auto found = rows.find(communicator);
  return found == rows.end() ? -1 : found->second;
}

struct OperationColumns {
  explicit OperationColumns(Table* t)
      : rank(t->add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"})),
        process(t->add<uint32_t>("process", {"1", "row of /ranks"})),
        communicator(t->add<int64_t>("communicator", {"1", "row of /nccl/communicators"})),
        region(t->add<int64_t>("region", {"1", "row of /regions: the function"})),
        call(t->add<uint64_t>("call", {"1", "number of the operation on its communicator"})),
        sequence(t->add<uint64_t>("sequence", {"1", "NCCL's number, by function; or by peer"})),
        bytes(t->add<uint64_t>("bytes", {"bytes", "count of the call times size of the type"})),
        peer(t->add<int32_t>("peer", {"1", "root or peer, -2 none"})),
        type(t->add<uint8_t>("type", {"1", "entry of the attribute types"})),
        algorithm(t->add<uint8_t>("algorithm", {"1", "entry of the attribute algorithms"})),
        protocol(t->add<uint8_t>("protocol", {"1", "entry of the attribute protocols"})),
        channels(t->add<uint8_t>("channels", {"1", "channels it works on, 0 unknown"})),
        flags(t->add<uint32_t>("flags", {"1", "bits of the attribute flags"})),
        start(t->add<uint64_t>("start_ns", {"ns", "begin of the call, since 1970"})),
        launch(t->add<uint64_t>("launch_ns", {"ns", "launch of its kernel, 0 unknown"})),
        end(t->add<uint64_t>("end_ns", {"ns", "last event of it, since 1970"})),
        gpu_begin(t->add<uint64_t>("gpu_begin_ns", {"ns", "its begin on the GPU, 0 unknown"})),
        gpu(t->add<double>("gpu_ns", {"ns", "its time on the GPU, NaN unknown"})),
        wait(t->add<double>("wait_ns", {"ns", "of it, for members that came later; NaN unknown"})),
        skew(t->add<double>("skew_ns", {"ns", "from the first to the last channel's begin"})),
        algbw(t->add<double>("algbw", {"1e9 B/s", "algorithm bandwidth as of nccl-tests"})),
        busbw(t->add<double>("busbw", {"1e9 B/s", "bus bandwidth as of nccl-tests"})) {}

  Column<int64_t>& rank;
  Column<uint32_t>& process;
  Column<int64_t>& communicator;
  Column<int64_t>& region;
  Column<uint64_t>& call;
  Column<uint64_t>& sequence;
  Column<uint64_t>& bytes;
  Column<int32_t>& peer;
  Column<uint8_t>& type;
  Column<uint8_t>& algorithm;
  Column<uint8_t>& protocol;
  Column<uint8_t>& channels;
  Column<uint32_t>& flags;
  Column<uint64_t>& start;
  Column<uint64_t>& launch;
  Column<uint64_t>& end;
  Column<uint64_t>& gpu_begin;
  Column<double>& gpu;
  Column<double>& wait;
  Column<double>& skew;
  Column<double>& algbw;
  Column<double>& busbw;
};

void append_operation(OperationColumns& to, const Model& model, const Rows& rows,
                      const OperationRow& row) {
  const NcclOperation& operation = row.operation;
  const Group& group = model.groups[row.group];
  const bool is_told = (operation.flags & kNcclGpuTimed) != 0;
  const bool is_timed = is_told || (operation.flags & kNcclKernelTimed) != 0;
  const nccl::Bandwidth bandwidth =
      nccl::bandwidth(name_of(model, operation.region), operation.bytes,
                      is_timed ? operation.gpu_ns : 0, size_of(model, operation.communicator));
  to.rank.append(group.rank ? int64_t{*group.rank} : -1);
  to.process.append(row.group);
  to.communicator.append(find(rows, operation.communicator));
  to.region.append(row_of(operation.region, model.regions.size()));
  to.call.append(operation.call);
  to.sequence.append(operation.sequence);
  to.bytes.append(operation.bytes);
  to.peer.append(operation.peer);
  to.type.append(static_cast<uint8_t>(operation.type));
  to.algorithm.append(static_cast<uint8_t>(operation.algorithm));
  to.protocol.append(static_cast<uint8_t>(operation.protocol));
  to.channels.append(operation.channels);
  to.flags.append(operation.flags);
  to.start.append(operation.start_ns);
  to.launch.append(operation.launch_ns);
  to.end.append(operation.end_ns);
  to.gpu_begin.append(operation.gpu_begin_ns);
  to.gpu.append(is_timed ? static_cast<double>(operation.gpu_ns) : std::nan(""));
  const bool has_wait = row.wait_ns != OperationRow::kNoWait;
  to.wait.append(has_wait ? static_cast<double>(row.wait_ns) : std::nan(""));
  to.skew.append(is_told ? static_cast<double>(operation.skew_ns) : std::nan(""));
  to.algbw.append(bandwidth.algorithm_bytes_per_s / kGiga);
  to.busbw.append(bandwidth.bus_bytes_per_s / kGiga);
}

void write_operations(hid_t file, const Model& model, const OperationTable& operations,
                      const Rows& rows) {
  Table table(file, "nccl/operations", "operations of NCCL, one row per rank and operation");
  OperationColumns columns(&table);
  for (const OperationRow& row : operations.rows()) append_operation(columns, model, rows, row);
  table.finish();
  const hid_t group = table.group();
  set_attribute(group, "types", texts(nccl::kTypeNames));
  set_attribute(group, "algorithms", texts(nccl::kAlgorithmNames));
  set_attribute(group, "protocols", texts(nccl::kProtocolNames));
  set_attribute(group, "flags", kFlags);
  set_attribute(group, "operations_left_out", static_cast<int64_t>(operations.left_out_count()));
  // By a hash that is the same for all rows of an operation; those in flight are not thinned out.
  set_attribute(group, "kept_one_in", int64_t{1} << std::min(operations.thinning(), 62u));
}

void write_histograms(hid_t file, const Model& model, const OperationTable& operations,
                      const Rows& rows) {
  Table table(file, "nccl/histograms", "all operations by communicator, function and size");
  auto& communicator = table.add<int64_t>("communicator", {"1", "row of /nccl/communicators"});
  auto& region = table.add<int64_t>("region", {"1", "row of /regions: the function"});
  auto& log2 = table.add<uint32_t>("log2_bytes", {"1", "operations of 2^b to 2^(b+1) bytes"});
  auto& count = table.add<uint64_t>("count", {"1", "operations, each rank's"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "of their calls"});
  auto& host = table.add<uint64_t>("host_ns", {"ns", "from their calls to their last events"});
  auto& timed = table.add<uint64_t>("timed_count", {"1", "whose time on the GPU is known"});
  auto& gpu = table.add<uint64_t>("gpu_ns", {"ns", "time of these on the GPU"});
  auto& least = table.add<uint64_t>("min_ns", {"ns", "shortest of these"});
  auto& most = table.add<uint64_t>("max_ns", {"ns", "longest of these"});
  auto& algbw = table.add<double>("algbw", {"1e9 B/s", "mean of these, NaN without"});
  auto& busbw = table.add<double>("busbw", {"1e9 B/s", "mean of these, NaN without"});
  auto& buckets = table.add<uint64_t, profile::kHistogramBuckets>(
      "histogram", {"1", "of these by time: bucket b is 2^b to 2^(b+1) ns"});
  for (const auto& [key, histogram] : operations.histograms()) {
    const auto [communicator_id, region_id, size] = key;
    const nccl::Bandwidth bandwidth =
        nccl::bandwidth(name_of(model, region_id), histogram.timed_bytes, histogram.gpu_ns,
                        size_of(model, communicator_id));
    communicator.append(find(rows, communicator_id));
    region.append(row_of(region_id, model.regions.size()));
    log2.append(size);
    count.append(histogram.count);
    bytes.append(histogram.bytes);
    host.append(histogram.host_ns);
    timed.append(histogram.timed_count);
    gpu.append(histogram.gpu_ns);
    least.append(histogram.min_ns);
    most.append(histogram.max_ns);
    algbw.append(bandwidth.algorithm_bytes_per_s / kGiga);
    busbw.append(bandwidth.bus_bytes_per_s / kGiga);
    buckets.append(histogram.by_duration);
  }
  table.finish();
  add_duration_buckets(table.group(), buckets.id());
  set_attribute(table.group(), "operations_missing",
                static_cast<int64_t>(operations.missing_count()));
}

struct MemberColumns {
  MemberColumns(Table* t, const std::string& prefix)
      : rank(t->add<int64_t>((prefix + "rank").c_str(),
                             {"1", "rank in MPI_COMM_WORLD, -1 without"})),
        process(t->add<uint32_t>((prefix + "process").c_str(), {"1", "row of /ranks"})),
        node(t->add<uint32_t>((prefix + "node").c_str(), {"1", "row of /nodes"})),
        device(t->add<int32_t>((prefix + "device").c_str(),
                               {"1", "ordinal in its process, -1 unknown"})) {}
  void append(const Model& model, const nccl::LateMember& member) {
    const Group& group = model.groups[member.group];
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(group.id);
    node.append(group.node);
    device.append(member.device == kNoDevice ? -1 : static_cast<int32_t>(member.device));
  }

  Column<int64_t>& rank;
  Column<uint32_t>& process;
  Column<uint32_t>& node;
  Column<int32_t>& device;
};

/// Of a member in one function of a communicator, over all links of its sends.
struct LateSends {
  nccl::NetworkLate sum;
  int64_t peer = -1;  ///< whose link lost most
  uint64_t peer_ns = 0;
};

class NetworkColumns {
 public:
  NetworkColumns(Table* table, const nccl::NetworkSummary& network)
      : count_(table->add<uint64_t>(
            "network_late_count", {"1", "slow operations in which its sends held up the others"})),
        lost_(table->add<uint64_t>("network_late_ns", {"ns", "all members lost in these"})),
        peer_(table->add<int64_t>("network_late_peer",
                                  {"1",
                                   "rank in the communicator that most of it was sent to, "
                                   "-1 none"})),
        slow_count_(table->add<uint64_t>(
            "gpu_slow_count", {"1", "slow operations in which its GPU held up the others"})),
        slow_(table->add<uint64_t>("gpu_slow_ns", {"ns", "all members lost in these"})),
        gpus_(network.gpus) {
    for (const auto& [key, link] : network.links) {
      const auto [communicator, region, source, peer] = key;
      LateSends& row = rows_[{communicator, region, source}];
      row.sum.count += link.count;
      row.sum.lost_ns += link.lost_ns;
      if (link.lost_ns <= row.peer_ns) continue;
      row.peer = peer;
      row.peer_ns = link.lost_ns;
    }
  }
  void append(const LatenessRow& row) {
    const LateSends& own = rows_[{row.communicator, row.region, row.group}];
    count_.append(own.sum.count);
    lost_.append(own.sum.lost_ns);
    peer_.append(own.peer);
    const auto gpu = gpus_.find({row.communicator, row.region, row.group});
    const nccl::NetworkLate slow = gpu != gpus_.end() ? gpu->second : nccl::NetworkLate();
    slow_count_.append(slow.count);
    slow_.append(slow.lost_ns);
  }

 private:
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, LateSends> rows_;
  Column<uint64_t>& count_;
  Column<uint64_t>& lost_;
  Column<int64_t>& peer_;
  Column<uint64_t>& slow_count_;
  Column<uint64_t>& slow_;
  const decltype(nccl::NetworkSummary::gpus)& gpus_;
};

void add_network_attributes(hid_t group, const nccl::LatenessSummary& lateness) {
  const nccl::NetworkSummary& network = lateness.network;
  const auto add = [&](const char* name, uint64_t value) {
    set_attribute(group, name, static_cast<int64_t>(value));
  };
  add("operations_with_steps", network.told_count);
  add("network_late_operations", network.all.count);
  add("network_late_ns", network.all.lost_ns);
  add("network_late_ns_of_no_link", network.even.lost_ns);
  add("gpu_slow_operations", network.all_gpus.count);
  add("gpu_slow_ns", network.all_gpus.lost_ns);
  add("operations_with_steps_left_out", network.left_out_count);
  add("send_records_left_out", lateness.unmatched_send_count);
}

void write_nccl_lateness(hid_t file, const Model& model, const nccl::LatenessSummary& lateness,
                         const Rows& rows) {
  Table table(file, "nccl/lateness", "who came late to operations, without comparing clocks");
  auto& communicator = table.add<int64_t>("communicator", {"1", "row of /nccl/communicators"});
  auto& region = table.add<int64_t>("region", {"1", "row of /regions: the function"});
  MemberColumns member(&table, "");
  auto& count = table.add<uint64_t>("count", {"1", "operations it took part in"});
  auto& last = table.add<uint64_t>("last_count", {"1", "of these, it came last"});
  auto& wait = table.add<uint64_t>("wait_ns", {"ns", "its GPU waited for others"});
  auto& late = table.add<uint64_t>("late_count", {"1", "it came late by 10 us or more"});
  auto& shared = table.add<uint64_t>("shared_count", {"1", "of late_count: with others"});
  auto& caused = table.add<uint64_t>("caused_ns", {"ns", "its share of what others waited"});
  auto& host = table.add<uint64_t>("host_late_ns", {"ns", "of caused_ns: its host was late"});
  auto& gpu = table.add<uint64_t>("gpu_late_ns", {"ns", "of caused_ns: its GPU was busy"});
  auto& untold = table.add<uint64_t>("untold_ns", {"ns", "of caused_ns: its launch is not known"});
  auto& longest = table.add<uint64_t>("max_caused_ns", {"ns", "caused_ns of one operation"});
  auto& least = table.add<uint64_t>("least_ns", {"ns", "of the members that came last"});
  NetworkColumns network(&table, lateness.network);
  for (const LatenessRow& row : lateness.table.rows()) {
    const auto found = lateness.causes.find({row.communicator, row.region, row.group});
    const nccl::Causes causes = found == lateness.causes.end() ? nccl::Causes() : found->second;
    communicator.append(find(rows, row.communicator));
    region.append(row_of(row.region, model.regions.size()));
    member.append(model, lateness.members[row.group]);
    count.append(row.count);
    last.append(row.last_count);
    late.append(row.late_count);
    shared.append(row.shared_count);
    wait.append(row.wait_ns);
    caused.append(row.caused_ns);
    host.append(causes.host_ns);
    gpu.append(causes.gpu_ns);
    untold.append(causes.untold_ns);
    longest.append(row.max_caused_ns);
    least.append(row.least_ns);
    network.append(row);
  }
  table.finish();
  const hid_t group = table.group();
  add_network_attributes(group, lateness);
  set_attribute(group, "operations", static_cast<int64_t>(lateness.table.operation_count()));
  set_attribute(group, "operations_connecting", static_cast<int64_t>(lateness.connecting_count));
  set_attribute(group, "parts_with_gpu_time", static_cast<int64_t>(lateness.timed_count));
  set_attribute(group, "parts_without_gpu_time", static_cast<int64_t>(lateness.untimed_count));
  set_attribute(group, "parts_left_out", static_cast<int64_t>(lateness.unmatched_count));
  set_attribute(group, "members_left_out", static_cast<int64_t>(lateness.table.left_out_count()));
}

void write_links(hid_t file, const Model& model, const nccl::LatenessSummary& lateness) {
  Table table(file, "nccl/links", "transfers by sender, receiver and size, without waiting");
  MemberColumns source(&table, "source_");
  MemberColumns destination(&table, "destination_");
  auto& log2 = table.add<uint32_t>("log2_bytes", {"1", "transfers of 2^b to 2^(b+1) bytes"});
  auto& count = table.add<uint64_t>("count", {"1", "transfers"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "of these"});
  auto& time = table.add<uint64_t>("time_ns", {"ns", "of these, without waiting"});
  auto& bandwidth = table.add<double>("bandwidth", {"1e9 B/s", "bytes by time"});
  auto& ratio = table.add<double>("ratio", {"1", "mean time to that of the median link"});
  for (const nccl::LinkRow& row : lateness.links) {
    source.append(model, lateness.members[row.source]);
    destination.append(model, lateness.members[row.destination]);
    log2.append(row.log2_bytes);
    count.append(row.count);
    bytes.append(row.bytes);
    time.append(row.time_ns);
    bandwidth.append(row.time_ns == 0
                         ? std::nan("")
                         : static_cast<double>(row.bytes) / static_cast<double>(row.time_ns));
    ratio.append(row.ratio);
  }
  table.finish();
}

void write_proxy(hid_t file, const Model& model, const nccl::ProxyTable& proxy, const Rows& rows) {
  Table table(file, "nccl/proxy", "what NCCL's proxies moved, by peer, and what they waited for");
  auto& communicator = table.add<int64_t>("communicator", {"1", "row of /nccl/communicators"});
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& peer = table.add<int32_t>("peer", {"1", "rank in the communicator"});
  auto& send = table.add<uint8_t>("is_send", {"1", "0: it receives"});
  auto& count = table.add<uint64_t>("count", {"1", "operations, on each of their channels"});
  auto& planned = table.add<uint64_t>("planned_steps", {"1", "steps of these, as planned"});
  auto& steps = table.add<uint64_t>("steps", {"1", "steps that were told one by one"});
  auto& bytes = table.add<uint64_t>("bytes", {"bytes", "of steps"});
  auto& time = table.add<uint64_t>("time_ns", {"ns", "from begin to end"});
  auto& gpu = table.add<uint64_t>("gpu_wait_ns", {"ns", "steps waited for the GPU"});
  auto& ready = table.add<uint64_t>("peer_wait_ns", {"ns", "steps waited for the peer"});
  auto& network = table.add<uint64_t>("network_wait_ns", {"ns", "steps waited for the network"});
  auto& flush = table.add<uint64_t>("flush_wait_ns", {"ns", "steps waited for flushes"});
  auto& longest = table.add<uint64_t>("longest_step_ns", {"ns", "of a step"});
  auto& events = table.add<uint64_t>("network_events", {"1", "of the network plugin"});
  for (const auto& [key, row] : proxy.rows()) {
    const Group& group = model.groups[std::get<1>(key)];
    communicator.append(find(rows, std::get<0>(key)));
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(group.id);
    peer.append(std::get<2>(key));
    send.append(std::get<3>(key) ? 1 : 0);
    count.append(row.operation_count);
    planned.append(row.planned_step_count);
    steps.append(row.step_count);
    bytes.append(row.bytes);
    time.append(row.time_ns);
    gpu.append(row.gpu_ns);
    ready.append(row.peer_ns);
    network.append(row.network_ns);
    flush.append(row.flush_ns);
    longest.append(row.longest_step_ns);
    events.append(row.network_event_count);
  }
  table.finish();
  set_attribute(table.group(), "records_left_out", static_cast<int64_t>(proxy.left_out_count()));
}

}  // namespace

void write_nccl(hid_t file, const Model& model, const OperationTable& operations,
                const nccl::ProxyTable& proxy, const nccl::LatenessSummary* lateness) {
  const bool has_proxy = !proxy.rows().empty() || proxy.left_out_count() != 0;
  if (operations.is_empty() && !has_proxy) return;
  const Rows rows = write_nccl_communicators(file, model, operations);
  write_operations(file, model, operations, rows);
  write_histograms(file, model, operations, rows);
  if (has_proxy) write_proxy(file, model, proxy, rows);
  if (lateness == nullptr) return;
  write_nccl_lateness(file, model, *lateness, rows);
  write_true_times(file, "nccl/true_times", "/nccl/communicators", model, lateness->times,
                   lateness->left_out_count,
                   [&](uint32_t communicator) { return find(rows, communicator); });
  write_links(file, model, *lateness);
}

}  // namespace aon::writers::hdf5
