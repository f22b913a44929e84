// Properties of nodes and processes: what the topology of the node says, and where each process is
// bound.

#include <string_view>

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

}  // namespace

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
  add_property(tree_node, "CPU", info_value(xml, "CPUModel"));
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
