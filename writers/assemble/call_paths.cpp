// Call paths of the model: what the processes of a job saw as offsets in files becomes functions,
// and paths through the same functions and lines become one.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

/// Nodes in all; the paths beyond end at the deepest node that is there.
constexpr size_t kMaxCallPaths = 1u << 22;

struct ModuleKey {
  std::string path;
  std::string build_id;
  auto operator<=>(const ModuleKey&) const = default;
};

/// A function as it is called at one place; several where calls were inlined.
struct NamedFrame {
  uint32_t function;
  uint32_t line;
};
using Frames = std::vector<NamedFrame>;  ///< outermost first

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

class FunctionTable {
 public:
  explicit FunctionTable(std::vector<GlobalFunction>* functions) : functions_(functions) {}

  uint32_t id_of(std::string_view name, std::string_view file, const std::string& module) {
    const auto [entry, is_new] =
        ids_.try_emplace({std::string(name), std::string(file), module},
                         static_cast<uint32_t>(functions_->size()));
    if (is_new) functions_->push_back({std::string(name), std::string(file), module});
    return entry->second;
  }

 private:
  std::vector<GlobalFunction>* functions_;
  std::map<std::tuple<std::string, std::string, std::string>, uint32_t> ids_;
};

/// All offsets that the paths of a job go through, and the functions there.
class Places {
 public:
  explicit Places(FunctionTable* functions) : functions_(functions) {}

  void add(const ModuleKey& module, uint64_t offset) { modules_[module].emplace(offset, Frames()); }

  void resolve() {
    for (auto& [module, places] : modules_) {
      for (auto& [offset, frames] : places) {
        if (!frames.empty()) continue;
        const std::string name = module.path.empty()
                                     ? fmt::format("{:#x}", offset)
                                     : fmt::format("{}+{:#x}", base_name(module.path), offset);
        frames.push_back({functions_->id_of(name, "", module.path), 0});
      }
    }
  }

  const Frames& frames(const ModuleKey& module, uint64_t offset) const {
    return modules_.at(module).at(offset);
  }

 private:
  FunctionTable* functions_;
  std::map<ModuleKey, std::map<uint64_t, Frames>> modules_;
};

ModuleKey module_of(const spool::Process& process, const CallPathNode& node) {
  const auto found = process.mappings.find(node.mapping);
  if (found == process.mappings.end()) return {};
  const MappingDefinition& mapping = found->second.definition;
  return {found->second.path,
          {reinterpret_cast<const char*>(mapping.build_id), mapping.build_id_bytes}};
}

/// The tree over all processes.
class Tree {
 public:
  explicit Tree(std::vector<GlobalCallPath>* nodes) : nodes_(nodes) {}

  uint32_t child(uint32_t parent, const NamedFrame& frame) {
    const auto [entry, is_new] = ids_.try_emplace({parent, frame.function, frame.line}, parent);
    if (!is_new) return entry->second;
    if (nodes_->size() >= kMaxCallPaths) {
      ids_.erase(entry);
      return parent;
    }
    entry->second = static_cast<uint32_t>(nodes_->size());
    GlobalCallPath node{};
    if (parent != kNoCallPath) node.parent = parent;
    node.function = frame.function;
    node.line = frame.line;
    node.depth = parent == kNoCallPath ? 0 : (*nodes_)[parent].depth + 1;
    nodes_->push_back(node);
    return entry->second;
  }

 private:
  std::vector<GlobalCallPath>* nodes_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> ids_;
};

template <class Visit>
void for_each_node(const Model& model, Visit visit) {
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const spool::CallPaths& paths : group.process->call_paths) {
      for (size_t i = 0; i < paths.nodes.size(); ++i)
        visit(group, paths.first_id + static_cast<uint32_t>(i), paths.nodes[i]);
    }
  }
}

}  // namespace

void build_call_paths(JobModel* parts) {
  Model& model = parts->model;
  FunctionTable functions(&model.functions);
  Places places(&functions);
  for_each_node(model, [&](const Group& group, uint32_t, const CallPathNode& node) {
    places.add(module_of(*group.process, node), node.offset);
  });
  places.resolve();
  Tree tree(&model.call_paths);
  for (Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const spool::CallPaths& paths : group.process->call_paths) {
      for (size_t i = 0; i < paths.nodes.size(); ++i) {
        const CallPathNode& node = paths.nodes[i];
        const auto parent = group.call_path_map.find(node.parent);
        uint32_t at = parent == group.call_path_map.end() ? kNoCallPath : parent->second;
        for (const NamedFrame& frame :
             places.frames(module_of(*group.process, node), node.offset))
          at = tree.child(at, frame);
        group.call_path_map[paths.first_id + static_cast<uint32_t>(i)] = at;
      }
    }
  }
}

}  // namespace aon::writers
