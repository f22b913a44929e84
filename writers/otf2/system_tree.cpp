// The machine, its nodes and their hardware; properties of nodes and processes: what the topology
// of the node says, and where each process is bound.

#include <optional>
#include <set>
#include <string_view>

#include "core/spool/text.h"
#include "core/topology/topology.h"
#include "writers/devices/device_names.h"
#include "writers/otf2/definitions.h"

namespace aon::writers::otf2 {
namespace {

/// Number of objects of `type` in hwloc's XML export.
size_t count_objects(std::string_view xml, const std::string& type) {
  const std::string needle = "<object type=\"" + type + "\"";
  size_t count = 0;
  for (size_t at = xml.find(needle); at != std::string_view::npos; at = xml.find(needle, at + 1)) {
    ++count;
  }
  return count;
}

/// Value of the first <info name="NAME" value="..."/>; empty without one.
std::string info_value(std::string_view xml, const std::string& name) {
  const std::string needle = "<info name=\"" + name + "\" value=\"";
  const size_t at = xml.find(needle);
  if (at == std::string_view::npos) return {};
  const size_t start = at + needle.size();
  const size_t end = xml.find('"', start);
  if (end == std::string_view::npos) return {};
  return std::string(xml.substr(start, end - start));
}

/// How OTF2 calls an object of hwloc's.
struct TreeWords {
  const char* class_name;
  OTF2_SystemTreeDomain domain;
};

std::optional<TreeWords> words_of(topology::ObjectType type) {
  switch (type) {
    case topology::ObjectType::kPackage:
      return TreeWords{"package", OTF2_SYSTEM_TREE_DOMAIN_SOCKET};
    case topology::ObjectType::kNumaNode:
      return TreeWords{"NUMA node", OTF2_SYSTEM_TREE_DOMAIN_NUMA};
    case topology::ObjectType::kCache:
      return TreeWords{"cache", OTF2_SYSTEM_TREE_DOMAIN_CACHE};
    case topology::ObjectType::kCore:
      return TreeWords{"core", OTF2_SYSTEM_TREE_DOMAIN_CORE};
    case topology::ObjectType::kGpu:
      return TreeWords{"GPU", OTF2_SYSTEM_TREE_DOMAIN_ACCELERATOR_DEVICE};
    case topology::ObjectType::kNic:
      return TreeWords{"network adapter", OTF2_SYSTEM_TREE_DOMAIN_NETWORKING_DEVICE};
    case topology::ObjectType::kMachine:  // the node itself
    case topology::ObjectType::kPu:       // a property of its core
      return std::nullopt;
  }
  return std::nullopt;
}

/// Objects of all nodes together; those of further nodes stand in profile.h5 alone.
constexpr size_t kMaxHardware = size_t{1} << 13;

}  // namespace

/// machine -> nodes -> hardware. Processes hang on their node, not on the hardware that they are
/// bound to: ViTE stops at levels it does not know, so those are leaves for it.
void GlobalDefinitions::write_system_tree() {
  note(OTF2_GlobalDefWriter_WriteSystemTreeNode(
      file_, 0, string_id("machine"), string_id("machine"), OTF2_UNDEFINED_SYSTEM_TREE_NODE));
  note(OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(file_, 0, OTF2_SYSTEM_TREE_DOMAIN_MACHINE));
  std::unordered_map<std::string, uint32_t> by_host;
  std::vector<const spool::Node*> nodes;  // by number in the tree, from 1
  for (const spool::Node& node : model_.job->nodes) {
    const uint32_t tree_node = 1 + static_cast<uint32_t>(by_host.size());
    const auto [entry, is_new] = by_host.try_emplace(node.host, tree_node);
    tree_nodes_.push_back(entry->second);
    if (!is_new) {
      const spool::Node*& known = nodes[entry->second - 1];
      if (known->topology_xml.empty()) known = &node;
      continue;
    }
    nodes.push_back(&node);
    note(OTF2_GlobalDefWriter_WriteSystemTreeNode(file_, tree_node, string_id(node.host),
                                                  string_id("node"), 0));
    note(OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(file_, tree_node,
                                                        OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY));
  }
  next_tree_node_ = 1 + static_cast<uint32_t>(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    write_node_properties(1 + i, *nodes[i]);
    write_hardware(1 + i, *nodes[i]);
  }
}

/// What hwloc saw in a node, but for what says nothing new: caches of a single core, and hardware
/// threads, which are a property of their core.
void GlobalDefinitions::write_hardware(uint32_t node_id, const spool::Node& node) {
  if (node.topology_xml.empty()) return;
  if (hardware_count_ == kMaxHardware) {
    add_property(node_id, "hardware", "in /topology of profile.h5");
    return;
  }
  const Result<topology::Topology> machine = topology::Topology::from_xml(node.topology_xml);
  if (!machine) return;
  const std::vector<topology::Object> objects = machine.value().objects();
  std::set<std::string> cores;
  for (const topology::Object& object : objects)
    if (object.type == topology::ObjectType::kCore) cores.insert(object.cpus);
  std::vector<uint32_t> ids(objects.size(), node_id);  // of those left out: what they lie in
  for (size_t i = 0; i < objects.size(); ++i) {
    const topology::Object& object = objects[i];
    const uint32_t parent = object.parent ? ids[*object.parent] : node_id;
    const std::optional<TreeWords> words = words_of(object.type);
    const bool is_private =
        object.type == topology::ObjectType::kCache && cores.count(object.cpus) != 0;
    ids[i] = parent;
    if (!words || is_private) continue;
    if (hardware_count_ == kMaxHardware) {
      add_property(node_id, "hardware", "all of it in /topology of profile.h5");
      return;
    }
    ids[i] = next_tree_node_++;
    ++hardware_count_;
    note(OTF2_GlobalDefWriter_WriteSystemTreeNode(file_, ids[i],
                                                  string_id(spool::clean_text(object.name)),
                                                  string_id(words->class_name), parent));
    note(OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(file_, ids[i], words->domain));
    add_property(ids[i], "hardware threads", object.cpus);
    add_property(ids[i], "bus address", object.pci_address);
    add_property(ids[i], "model", spool::clean_text(object.model));
    if (object.size_bytes != 0) add_property(ids[i], "bytes", std::to_string(object.size_bytes));
  }
}

void GlobalDefinitions::add_property(uint32_t tree_node, const char* name,
                                     const std::string& value) {
  if (value.empty()) return;
  OTF2_AttributeValue attribute;
  attribute.stringRef = string_id(value);
  note(OTF2_GlobalDefWriter_WriteSystemTreeNodeProperty(file_, tree_node, string_id(name),
                                                        OTF2_TYPE_STRING, attribute));
}

void GlobalDefinitions::write_node_properties(uint32_t tree_node, const spool::Node& node) {
  const std::string_view xml = node.topology_xml;
  add_property(tree_node, "launch", node.launch_id);
  if (xml.empty()) return;
  struct Words {
    const char* type;
    const char* name;
  };
  for (const Words& words : {Words{"Package", "packages"}, Words{"NUMANode", "NUMA nodes"},
                             Words{"Core", "cores"}, Words{"PU", "hardware threads"}}) {
    const size_t count = count_objects(xml, words.type);
    if (count != 0) add_property(tree_node, words.name, std::to_string(count));
  }
  add_property(tree_node, "CPU", spool::clean_text(info_value(xml, "CPUModel")));
}

void GlobalDefinitions::write_device_properties(uint32_t id, const Group& group, uint32_t device) {
  if (group.process == nullptr) return;
  const auto found = group.process->devices.find(device);
  if (found == group.process->devices.end()) return;
  auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    OTF2_AttributeValue attribute;
    attribute.stringRef = string_id(value);
    note(OTF2_GlobalDefWriter_WriteLocationGroupProperty(file_, id, string_id(name),
                                                         OTF2_TYPE_STRING, attribute));
  };
  add("device", found->second.name);
  add("uuid", devices::uuid_text(group, device));
  add("bus address", found->second.address);
}

void GlobalDefinitions::write_group_properties(const Group& group) {
  auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    OTF2_AttributeValue attribute;
    attribute.stringRef = string_id(value);
    note(OTF2_GlobalDefWriter_WriteLocationGroupProperty(file_, group.id, string_id(name),
                                                         OTF2_TYPE_STRING, attribute));
  };
  if (group.process == nullptr) {
    add("state", "no records");
    return;
  }
  add("program", group.process->program);
  add("pid", std::to_string(group.process->start.pid));
  add("bound to", group.process->binding);
}

}  // namespace aon::writers::otf2
