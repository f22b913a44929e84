/// Series that are about a device of a node and not about all of it (writers/devices/
/// device_names.h): they hang below /series/gpu_UUID/FOLDER.
/// Owner: the series writer.   Thread: one.   Cost: groups are looked at once, a node's topology
/// is read once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/topology/topology.h"
#include "writers/writer.h"

namespace aon::writers::hdf5 {

/// What is known of the device that a folder names.
struct DeviceFacts {
  std::string uuid;  ///< "GPU-5d2c..."
  std::string name;
  std::string address;     ///< on the PCI bus
  std::string numa_nodes;  ///< near to it, by hwloc
  std::string cpus;        ///< near to it, by hwloc
  std::string ranks;       ///< that ran something on it; empty: none is known
};

class DeviceFinder {
 public:
  explicit DeviceFinder(const Model& model);
  DeviceFacts find(uint32_t node, const std::string& folder);
  /// That ran on a node, ascending.
  const std::vector<const Group*>& ranks_of(uint32_t node) const { return ranks_[node]; }

 private:
  const std::vector<topology::Object>& objects_of(uint32_t node);

  const Model* model_;
  std::vector<std::vector<const Group*>> ranks_;               ///< by node
  std::map<uint32_t, std::vector<topology::Object>> objects_;  ///< by node
};

}  // namespace aon::writers::hdf5
