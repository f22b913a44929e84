/// The machine, as hwloc sees it: packages, NUMA nodes, caches, cores, hardware threads, GPUs and
/// network adapters with the NUMA nodes they are near to, in one flat table; and the CPUs a process
/// is bound to. The agent loads it once per node and stores hwloc's XML; writers and tools read
/// that XML again, so any recorded machine can be looked at anywhere. hwloc's own variables work:
/// HWLOC_XMLFILE and HWLOC_SYNTHETIC replace the machine for load().
///
/// Owner: the caller.   Thread: a value; one thread at a time.
/// Cost: load() 5-100 ms and about 1 MiB; it never starts a GPU runtime (hwloc's cuda, opencl and
/// gl parts stay off) and never moves the calling thread to other CPUs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

struct hwloc_topology;

namespace aon::topology {

enum class ObjectType : uint8_t {
  kMachine = 0,
  kPackage,
  kNumaNode,
  kCache,
  kCore,
  kPu,  ///< hardware thread
  kGpu,
  kNic,
};
const char* type_name(ObjectType type);

/// One row of the flat model. Lists are as in /proc: "0-3,8". `parent` is the row of the nearest
/// enclosing object in the model; it stands before its children.
struct Object {
  ObjectType type;
  std::optional<uint32_t> parent;
  uint32_t logical_index;  ///< among its type, from 0
  std::optional<uint32_t> os_index;
  uint32_t cache_level = 0;  ///< 1 to 5 for caches
  uint64_t size_bytes = 0;   ///< memory of a NUMA node, size of a cache
  std::string name;          ///< "Package 0", "L2 cache 3", "nvml0", "mlx5_0", "GPU 0000:04:00.0"
  std::string cpus;          ///< OS indexes of the hardware threads in or near it
  std::string numa_nodes;    ///< OS indexes of the NUMA nodes in or near it
  std::string pci_address;   ///< "0000:04:00.0", of devices on a PCI bus
  std::string model;         ///< of a package or device, where hwloc knows it
};

class Topology {
 public:
  /// Discovers this machine (or what HWLOC_XMLFILE, HWLOC_SYNTHETIC name).
  /// Errors: kUnavailable, with hwloc's reason.
  static Result<Topology> load();

  /// Reads what xml() wrote.   Errors: kDamaged.
  static Result<Topology> from_xml(const std::string& xml);

  ~Topology();
  Topology(Topology&& other) noexcept;
  Topology& operator=(Topology&& other) noexcept;

  /// hwloc XML, format 2.
  Result<std::string> xml() const;

  /// The flat model, the machine first.   Cost: proportional to objects.
  std::vector<Object> objects() const;

  /// False when it came from a file or a description.
  bool is_this_system() const;

 private:
  explicit Topology(hwloc_topology* topology) : topology_(topology) {}
  hwloc_topology* topology_;
};

/// Makes sure of what HWLOC_XMLFILE asks for: a relative name becomes absolute; a file that hwloc
/// cannot use leaves the environment, so that load() finds this machine.
/// Thread: before any other starts (changes the environment, forks).   Cost: none without the
/// variable, else that of load().
/// Errors: kDamaged, with the file: it was taken out.
Status settle_xml_file();

/// CPUs that process `pid` may run on, as a list ("0-3,8").
/// Errors: kNotFound when it has ended.
Result<std::string> binding_of(pid_t pid);

}  // namespace aon::topology
