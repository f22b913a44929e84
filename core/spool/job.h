/// The definitions of a whole job, read from DIR/spool/*/definitions.aon, with every id checked and
/// every string bounded. Owner: the caller.   Thread: a value; read it from anywhere.   Cost:
/// proportional to definitions, not to events. Errors: a damaged block is counted in
/// `damaged_blocks` and skipped; only a missing folder is an error.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace aon::spool {

struct Region {
  std::string name;
  RegionRole role;
  Paradigm paradigm;
};
/// Cartesian topology of a communicator.
struct Cartesian {
  std::vector<uint32_t> extents;  ///< by dimension
  uint32_t periodic = 0;          ///< bit i: dimension i is a ring
};
struct Communicator {
  CommunicatorDefinition definition;
  std::string name;
  std::optional<Cartesian> cartesian = std::nullopt;
  /// Ranks whose data this process gets in neighbourhood collectives; nothing: not told.
  std::optional<std::vector<uint32_t>> sources = std::nullopt;
  std::string nccl_id = {};  ///< commId as NCCL's log has it; "" unknown
};
/// Operations of NCCL whose records were refused. Its ids are of the process.
struct NcclSums {
  NcclSumsDefinition sums;
  std::vector<uint64_t> by_duration;  ///< from bucket sums.first_bucket on
};
struct Window {
  WindowDefinition definition;
  std::string name;
};

struct File {
  FileDefinition definition;
  std::string name;
};
struct Device {
  DeviceDefinition definition;
  std::string name;
  std::string address;  ///< on its bus
};
struct DeviceStream {
  DeviceStreamDefinition definition;
  std::string name;
};
struct Provider {
  std::string name;
  ProviderState state;
  std::string reason;
  std::string remedy;
};
struct Metric {
  MetricDefinition definition;
  std::string name;
  std::string unit;
  std::string description;
};

struct Mapping {
  MappingDefinition definition;
  std::string path;  ///< to be opened: any bytes
};
/// Nodes `first_id` and on of the tree of call paths.
struct CallPaths {
  uint32_t first_id;
  std::vector<CallPathNode> nodes;
};

/// Where a thread stood when it seemed to hang.
struct Stack {
  StackDefinition definition;
  std::vector<std::string> frames;  ///< "path+0xoffset", innermost first
  std::string remark;
};

struct JitSymbol {
  uint64_t end;
  std::string name;
};

/// Definitions that are missing: names and all that they would have told.
struct DefinitionsRefused {
  uint64_t by_pool = 0;  ///< of the process's own memory
  uint64_t by_disk = 0;  ///< the definition file was full, or could not be written for long
  uint64_t sum() const noexcept { return by_pool + by_disk; }
};

struct Process {
  ProcessStartDefinition start;
  std::string program;
  std::optional<ProcessExitDefinition> exit;
  std::optional<IdentityDefinition> identity;  ///< from MPI; wins over start.rank
  std::string binding;                         ///< cpu list, empty unknown
  std::unordered_map<uint32_t, Region> regions;
  std::map<uint32_t, Communicator> communicators;
  std::map<uint32_t, Window> windows;
  /// By communicator, region and log2 of the bytes.
  std::map<std::tuple<uint32_t, uint32_t, uint8_t>, NcclSums> nccl_sums;
  std::map<uint32_t, std::vector<uint32_t>> rank_groups;  ///< of PSCW epochs: world ranks
  std::map<uint32_t, File> files;
  std::map<std::string, Provider> providers;
  std::map<uint32_t, Metric> metrics;
  std::map<uint32_t, Device> devices;
  std::map<uint32_t, DeviceStream> device_streams;
  std::map<uint32_t, std::string> thread_names;  ///< by thread id; the program's own
  std::map<std::pair<uint16_t, uint16_t>, StreamDefinition>
      streams;  ///< (slot, context), latest state
  DefinitionsRefused refused_definitions;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;  ///< (slot, region) -> calls
  std::vector<LossDefinition> losses;  ///< other than pool full and stream cut
  std::vector<BudgetDefinition> budget_changes;
  std::map<uint32_t, Mapping> mappings;
  std::vector<CallPaths> call_paths;          ///< a parent comes before its children
  std::map<int32_t, std::string> task_names;  ///< by thread id; the kernel's
  std::vector<SamplingDefinition> sampling;   ///< in time order
  std::string sampled_event;
  std::map<uint64_t, JitSymbol> jit_symbols;          ///< by start
  std::map<uint16_t, OpenCallDefinition> open_calls;  ///< by slot
  std::map<int32_t, Stack> stacks;                    ///< by thread id, the latest
};

struct ClockPing {
  ClockPingDefinition definition;
  std::string peer;  ///< name of the other node's folder in spool/
};

struct Node {
  std::string host;
  std::string launch_id;
  std::filesystem::path folder;  ///< DIR/spool/NODE
  NodeDefinition definition;
  std::vector<ClockDefinition> clock;  ///< in time order
  std::vector<ClockPing> clock_pings;  ///< in time order
  std::optional<UsageDefinition> usage;
  std::map<uint32_t, Process> processes;
  std::map<uint32_t, Metric> metrics;            ///< node-wide ones
  std::map<std::string, Provider> providers;     ///< node-wide ones
  std::map<uint32_t, Device> devices;            ///< as its providers number them
  std::vector<BudgetDefinition> budget_changes;  ///< of providers
  std::string topology_xml;
  DefinitionsRefused refused_definitions;  ///< of the agent
  Process series;  ///< what its agent counted and lost of the node's own series; nothing else
};

struct Job {
  std::filesystem::path folder;
  std::vector<Node> nodes;
  uint64_t damaged_blocks = 0;  ///< of definitions; a node whose definitions are gone counts as one
  /// Of more than the last block of a node, which may have been cut off while it was written.
  bool has_damaged_definitions = false;
};

/// Reads the definitions below `folder`/spool.
Result<Job> read_job(const std::filesystem::path& folder);

}  // namespace aon::spool
