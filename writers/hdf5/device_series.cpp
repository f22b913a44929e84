#include "writers/hdf5/device_series.h"

#include <algorithm>
#include <cctype>

#include "core/spool/home_node.h"
#include "core/spool/text.h"
#include "writers/devices/device_names.h"

namespace aon::writers::hdf5 {

using devices::digits_of;

namespace {

/// CUDA writes an address on the bus in capitals, NVML and hwloc do not.
std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(tolower(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

DeviceFinder::DeviceFinder(const Model& model) : model_(&model), ranks_(model.job->nodes.size()) {
  const spool::HomeNodes homes(*model.job);
  for (const Group& group : model.groups) {
    const uint32_t node = homes.of(group.node);
    if (group.rank && node < ranks_.size()) ranks_[node].push_back(&group);
  }
}

const std::vector<topology::Object>& DeviceFinder::objects_of(uint32_t node) {
  const auto [found, is_new] = objects_.try_emplace(node);
  const std::string& xml = model_->job->nodes[node].topology_xml;
  if (is_new && !xml.empty()) {
    const Result<topology::Topology> machine = topology::Topology::from_xml(xml);
    if (machine) found->second = machine.value().objects();
  }
  return found->second;
}

DeviceFacts DeviceFinder::find(uint32_t node, const std::string& folder) {
  DeviceFacts facts;
  facts.uuid = devices::uuid_of(folder);
  const std::string digits = digits_of(facts.uuid);
  for (const auto& [number, device] : model_->job->nodes[node].devices) {
    if (digits_of(device.definition.uuid) != digits) continue;
    facts.name = device.name;
    facts.address = device.address;
  }
  for (const topology::Object& object : objects_of(node)) {
    if (facts.address.empty() || object.pci_address != facts.address) continue;
    facts.numa_nodes = object.numa_nodes;
    facts.cpus = object.cpus;
  }
  // What runs on a part of a divided GPU runs on its board, whose UUID its process is not told.
  const bool is_part = facts.uuid.starts_with("MIG-");
  const std::string board = is_part ? std::string() : lower_case(facts.address);
  std::vector<uint32_t> ranks;
  for (const Group* group : ranks_of(node)) {
    if (group->process == nullptr) continue;
    const auto& devices = group->process->devices;
    const bool uses = std::any_of(devices.begin(), devices.end(), [&](const auto& one) {
      return digits_of(one.second.definition.uuid) == digits ||
             (!board.empty() && lower_case(one.second.address) == board);
    });
    if (uses) ranks.push_back(*group->rank);
  }
  facts.ranks = spool::listed_ranks(ranks);
  return facts;
}

}  // namespace aon::writers::hdf5
