#include "writers/hdf5/tables.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/topology/topology.h"
#include "writers/hdf5/column.h"
#include "writers/profile/profile.h"

namespace aon::writers::hdf5 {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr size_t kMaxClockPings = 1u << 20;

const char* role_name(RegionRole role) {
  constexpr const char* kNames[] = {"function",   "point_to_point", "barrier",    "one_to_all",
                                    "all_to_one", "all_to_all",     "collective", "rma",
                                    "file_io",    "user",           "step"};
  static_assert(std::size(kNames) == static_cast<size_t>(RegionRole::kStep) + 1);
  const size_t index = static_cast<size_t>(role);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

const char* paradigm_name(Paradigm paradigm) {
  constexpr const char* kNames[] = {"user", "mpi", "cuda", "nccl", "aon", "nvtx"};
  const size_t index = static_cast<size_t>(paradigm);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

const char* kind_name(CommunicatorKind kind) {
  constexpr const char* kNames[] = {"world", "self", "intra", "inter", "nccl"};
  const size_t index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

const char* flavour_name(WindowFlavour flavour) {
  constexpr const char* kNames[] = {"create", "allocate", "shared", "dynamic"};
  const size_t index = static_cast<size_t>(flavour);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

/// "read write create", in the order of FileMode.
std::string mode_names(uint32_t mode) {
  constexpr const char* kNames[] = {
      "read", "write", "create", "exclusive", "delete_on_close", "unique", "sequential", "append"};
  std::string names;
  for (size_t bit = 0; bit < std::size(kNames); ++bit) {
    if ((mode >> bit & 1) == 0) continue;
    if (!names.empty()) names += ' ';
    names += kNames[bit];
  }
  return names;
}

/// NaN where it is not known.
double known_ns(uint64_t error_ns) {
  return error_ns == kUnknownClockError ? std::nan("") : static_cast<double>(error_ns);
}

/// How many of a node's `count` pings are kept of each so many, so that all nodes together have at
/// most kMaxClockPings.
size_t ping_stride(const spool::Job& job) {
  size_t count = 0;
  for (const spool::Node& node : job.nodes) count += node.clock_pings.size();
  return count / kMaxClockPings + 1;
}

}  // namespace

Handle create_profile(const std::filesystem::path& path) {
  Handle file = create_file(path);
  set_attribute(file.get(), "NX_class", "NXroot");
  set_attribute(file.get(), "default", "series");
  set_attribute(file.get(), "Conventions", "CF-1.8");
  set_attribute(file.get(), "creator", "aon " AON_VERSION);
  set_attribute(file.get(), "aon_format_version", kFormatVersion);
  return file;
}

void write_nodes(hid_t file, const Model& model) {
  Table table(file, "nodes", "one row per node; the row is the node's number");
  auto& name = table.add_text("name", {"", "host name"});
  auto& launch = table.add_text("launch", {"", "launch id"});
  auto& processes = table.add<uint64_t>("processes", {"1", "processes seen"});
  auto& tsc = table.add<uint32_t>("clock_is_tsc", {"1", "1: time stamps are TSC"});
  auto& error = table.add<double>("clock_error_ns",
                                  {"ns", "bound against the reference node's clock, NaN unknown"});
  auto& worst = table.add<double>("clock_worst_case_ns",
                                  {"ns", "the same if ways may be as unequal as they like"});
  auto& offset = table.add<int64_t>("clock_offset_ns", {"ns", "reference minus own, at the start"});
  auto& drift = table.add<int64_t>("clock_drift_ppb", {"1e-9", "of the reference against its own"});
  auto& cpu = table.add<uint64_t>("agent_cpu_ns", {"ns", "CPU time of the agent"});
  auto& disk = table.add<uint64_t>("disk_used_bytes", {"bytes", "disk space used for the job"});
  for (size_t n = 0; n < model.job->nodes.size(); ++n) {
    const spool::Node& node = model.job->nodes[n];
    const clock::NodeClock clock =
        n < model.cluster.nodes.size() ? model.cluster.nodes[n] : clock::NodeClock{};
    const uint64_t error_ns =
        n < model.clock_error_ns.size() ? model.clock_error_ns[n] : kUnknownClockError;
    const UsageDefinition usage = node.usage.value_or(UsageDefinition{});
    name.append(node.host);
    launch.append(node.launch_id);
    processes.append(node.processes.size());
    tsc.append(node.definition.clock_is_tsc);
    error.append(known_ns(error_ns));
    worst.append(clock.is_known ? known_ns(std::max(clock.worst_case_ns, error_ns)) : std::nan(""));
    offset.append(clock.offset_ns);
    drift.append(clock.drift_ppb);
    cpu.append(usage.agent_cpu_ns);
    disk.append(usage.disk_used_bytes);
  }
  table.finish();
}

void write_clock_pings(hid_t file, const Model& model) {
  const size_t stride = ping_stride(*model.job);
  Table table(file, "clock_pings", "exchanges between the agents of two nodes, as measured");
  auto& row_of_node = table.add<uint32_t>("node", {"1", "row of /nodes"});
  auto& peer = table.add<int64_t>("peer", {"1", "row of /nodes, -1 not there"});
  auto& sent = table.add<uint64_t>("sent_ticks", {"1", "clock of the node"});
  auto& peer_received = table.add<uint64_t>("peer_received_ticks", {"1", "clock of the peer"});
  auto& peer_sent = table.add<uint64_t>("peer_sent_ticks", {"1", "clock of the peer"});
  auto& received = table.add<uint64_t>("received_ticks", {"1", "clock of the node"});
  std::map<std::string, int64_t> rows;
  const std::vector<spool::Node>& nodes = model.job->nodes;
  for (size_t n = 0; n < nodes.size(); ++n) {
    rows[nodes[n].folder.filename().string()] = static_cast<int64_t>(n);
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (size_t i = 0; i < nodes[n].clock_pings.size(); i += stride) {
      const spool::ClockPing& ping = nodes[n].clock_pings[i];
      const auto found = rows.find(ping.peer);
      row_of_node.append(static_cast<uint32_t>(n));
      peer.append(found == rows.end() ? -1 : found->second);
      sent.append(ping.definition.sent_ticks);
      peer_received.append(ping.definition.peer_received_ticks);
      peer_sent.append(ping.definition.peer_sent_ticks);
      received.append(ping.definition.received_ticks);
    }
  }
  table.finish();
  set_attribute(table.group(), "one_of", static_cast<int64_t>(stride));
}

void write_ranks(hid_t file, const Model& model) {
  Table table(file, "ranks", "one row per process; rows below the world's size are the ranks");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& node = table.add<int64_t>("node", {"1", "row of /nodes, -1 unknown"});
  auto& host = table.add_text("host", {"", "host name"});
  auto& pid = table.add<int64_t>("pid", {"1", "process id on its node, -1 unknown"});
  auto& program = table.add_text("program", {"", "path of the program"});
  auto& binding = table.add_text("binding", {"", "CPUs it may run on"});
  auto& exit_code = table.add<int64_t>("exit_code", {"1", "exit status, -1 unknown"});
  auto& exit_signal = table.add<int64_t>("exit_signal", {"1", "signal that ended it, 0 none"});
  auto& finalized = table.add<uint32_t>("finalized", {"1", "1: reached MPI_Finalize"});
  auto& memory = table.add<uint64_t>("ring_bytes", {"bytes", "largest size of its ring"});
  auto& cpu = table.add<uint64_t>("cpu_time_ns", {"ns", "CPU time of the process"});
  for (const Group& group : model.groups) {
    const spool::Process* process = group.process;
    const bool has_exit = process != nullptr && process->exit.has_value();
    const bool has_node = process != nullptr && group.node < model.job->nodes.size();
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    node.append(has_node ? int64_t{group.node} : -1);
    host.append(has_node ? model.job->nodes[group.node].host : "");
    pid.append(process != nullptr ? process->start.pid : -1);
    program.append(process != nullptr ? process->program : "");
    binding.append(process != nullptr ? process->binding : "");
    exit_code.append(has_exit ? process->exit->exit_code : -1);
    exit_signal.append(has_exit ? process->exit->signal : 0);
    finalized.append(process != nullptr && process->identity ? process->identity->complete : 0);
    memory.append(has_exit ? process->exit->memory_bytes : 0);
    cpu.append(has_exit ? process->exit->cpu_time_ns : 0);
  }
  table.finish();
}

void write_regions(hid_t file, const Model& model) {
  Table table(file, "regions", "one row per region; the row is the region's id");
  auto& name = table.add_text("name", {"", "name"});
  auto& role = table.add_text("role", {"", "what it does"});
  auto& paradigm = table.add_text("paradigm", {"", "where it belongs to"});
  for (const GlobalRegion& region : model.regions) {
    name.append(region.name);
    role.append(role_name(region.role));
    paradigm.append(paradigm_name(region.paradigm));
  }
  table.finish();
}

constexpr const char* kOfWorlds = " of several worlds";

/// "4 x 2p": its extents, p behind a dimension that is a ring.
std::string cartesian_text(const std::optional<spool::Cartesian>& cartesian) {
  std::string text;
  if (!cartesian) return text;
  for (size_t i = 0; i < cartesian->extents.size(); ++i) {
    if (i != 0) text += " x ";
    text += std::to_string(cartesian->extents[i]);
    if ((cartesian->periodic >> i & 1) != 0) text += 'p';
  }
  return text;
}

void write_communicators(hid_t file, const Model& model) {
  Table table(file, "communicators", "one row per communicator; the row is its id");
  auto& name = table.add_text("name", {"", "name"});
  auto& kind =
      table.add_text("kind", {"",
                              "world, self, intra, inter or nccl; \"of several worlds\" (spawned, "
                              "connected): with its members in this job only; so is one that was "
                              "made unseen and cannot be told from another: one row per member"});
  auto& parent = table.add<int64_t>("parent", {"1", "row of the parent, -1 none"});
  auto& size = table.add<uint64_t>("size", {"1", "members"});
  auto& cartesian = table.add_text(
      "cartesian", {"", "extents of its Cartesian topology, row-major; p: periodic; empty: none"});
  auto& first = table.add<uint64_t>("first_member", {"1", "first row in members/world_rank"});
  Table member_table(table.group(), "members", "world ranks by communicator rank, -1 unknown");
  auto& world_rank = member_table.add<int64_t>("world_rank", {"1", "rank in MPI_COMM_WORLD"});
  for (const GlobalCommunicator& communicator : model.communicators) {
    name.append(communicator.name);
    kind.append(std::string(kind_name(communicator.kind)) +
                (communicator.is_of_worlds ? kOfWorlds : ""));
    parent.append(communicator.parent ? int64_t{*communicator.parent} : -1);
    size.append(communicator.members.size());
    cartesian.append(cartesian_text(communicator.cartesian));
    first.append(world_rank.rows());
    for (const int64_t member : communicator.members) world_rank.append(member);
  }
  member_table.finish();
  table.finish();
}

void write_windows(hid_t file, const Model& model) {
  Table table(file, "windows", "one row per window of one-sided communication; the row is its id");
  auto& name = table.add_text("name", {"", "name"});
  auto& communicator = table.add<uint32_t>("communicator", {"1", "row of /communicators"});
  auto& flavour = table.add_text("flavour", {"", "create, allocate, shared or dynamic"});
  for (const GlobalWindow& window : model.windows) {
    name.append(window.name);
    communicator.append(window.communicator);
    flavour.append(flavour_name(window.flavour));
  }
  table.finish();
}

void write_files(hid_t file, const Model& model) {
  Table table(file, "files", "one row per file that was opened; the row is its id");
  auto& name = table.add_text("name", {"", "as the program named it"});
  auto& communicator =
      table.add<int64_t>("communicator", {"1", "row of /communicators, -1 unknown"});
  auto& mode = table.add_text("mode", {"", "read, write, create, exclusive, ..."});
  for (const GlobalFile& opened : model.files) {
    name.append(model.file_names[opened.name]);
    communicator.append(opened.communicator ? int64_t{*opened.communicator} : -1);
    mode.append(mode_names(opened.mode));
  }
  table.finish();
}

void add_duration_buckets(hid_t group, hid_t histogram) {
  Column<uint64_t> bucket(group, "bucket", {"ns", "shortest duration in it"});
  bucket.append(0);
  for (size_t b = 1; b < profile::kHistogramBuckets; ++b) bucket.append(uint64_t{1} << b);
  bucket.finish();
  checked(H5DSset_scale(bucket.id(), "bucket"), "dimension");
  checked(H5DSattach_scale(histogram, bucket.id(), 1), "dimension");
}

void write_topology(hid_t file, const Model& model) {
  Table table(file, "topology", "hardware of each node, as hwloc saw it");
  auto& node = table.add<uint32_t>("node", {"1", "row of /nodes"});
  auto& type = table.add_text("type", {"", "machine, package, numa, cache, core, pu, gpu, nic"});
  auto& parent = table.add<int64_t>("parent", {"1", "row of the enclosing object, -1 none"});
  auto& logical = table.add<uint32_t>("logical_index", {"1", "number among its type"});
  auto& os = table.add<int64_t>("os_index", {"1", "number the system gives it, -1 none"});
  auto& level = table.add<uint32_t>("cache_level", {"1", "of caches"});
  auto& bytes = table.add<uint64_t>("size_bytes", {"bytes", "of caches and NUMA nodes"});
  auto& name = table.add_text("name", {"", "name"});
  auto& cpus = table.add_text("cpus", {"", "hardware threads in it or near it"});
  auto& numa = table.add_text("numa_nodes", {"", "NUMA nodes in it or near it"});
  auto& pci = table.add_text("pci_address", {"", "of devices"});
  auto& device = table.add_text("model", {"", "of packages and devices"});
  Table xml_table(table.group(), "xml", "hwloc XML by node");
  auto& xml = xml_table.add_text("document", {"", "hwloc XML, format 2"});
  for (size_t n = 0; n < model.job->nodes.size(); ++n) {
    const std::string& document = model.job->nodes[n].topology_xml;
    xml.append(document);
    if (document.empty()) continue;
    const Result<topology::Topology> machine = topology::Topology::from_xml(document);
    if (!machine) continue;  // the document itself is there for whoever can read it
    const int64_t first = static_cast<int64_t>(node.rows());
    for (const topology::Object& object : machine.value().objects()) {
      node.append(static_cast<uint32_t>(n));
      type.append(topology::type_name(object.type));
      parent.append(object.parent ? first + *object.parent : -1);
      logical.append(object.logical_index);
      os.append(object.os_index ? int64_t{*object.os_index} : -1);
      level.append(object.cache_level);
      bytes.append(object.size_bytes);
      name.append(object.name);
      cpus.append(object.cpus);
      numa.append(object.numa_nodes);
      pci.append(object.pci_address);
      device.append(object.model);
    }
  }
  xml_table.finish();
  table.finish();
}

}  // namespace aon::writers::hdf5
