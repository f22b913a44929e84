// Call paths of the model: what the processes of a job saw as offsets in files becomes functions,
// and paths through the same functions and lines become one.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/spool/text.h"
#include "writers/assemble/model_parts.h"
#include "writers/symbols/resolver.h"

namespace aon::writers {
namespace {

/// Nodes in all; the paths beyond end at the deepest node that is there.
constexpr size_t kMaxCallPaths = 1u << 22;

constexpr const char* kJitModule = "[jit]";
constexpr const char* kVdsoModule = "[vdso]";  ///< what the kernel maps into every process

/// Of kJitModule the build-id is the name of the function, as its compiler told it.
struct ModuleKey {
  std::string path;
  std::string build_id;
  bool operator<(const ModuleKey& other) const {
    return std::tie(path, build_id) < std::tie(other.path, other.build_id);
  }
};

/// An instruction, apart from where its module was loaded.
struct Place {
  ModuleKey module;
  uint64_t offset;
};

/// A function as it is called at one place; several where calls were inlined.
struct NamedFrame {
  uint32_t function;
  uint32_t line;
};
using Frames = std::vector<NamedFrame>;  ///< outermost first

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Files of programs may hold any bytes: names and files that differ in them only stay apart.
class FunctionTable {
 public:
  explicit FunctionTable(std::vector<GlobalFunction>* functions) : functions_(functions) {}

  uint32_t id_of(std::string_view name, std::string_view file, const std::string& module) {
    const auto [entry, is_new] = ids_.try_emplace({std::string(name), std::string(file), module},
                                                  static_cast<uint32_t>(functions_->size()));
    using spool::clean_text;
    if (is_new) functions_->push_back({clean_text(name), clean_text(file), clean_text(module)});
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

  void add(const Place& place) { modules_[place.module].emplace(place.offset, Frames()); }

  /// Looks all of them up; what has no name is its module and offset.
  std::vector<SymbolReport> resolve(const symbols::DebugSearch& search) {
    std::vector<SymbolReport> reports;
    symbols::ResolverOptions options;
    options.search = search;
    symbols::Resolver resolver(options);
    for (auto& [module, places] : modules_) {
      if (module.path.starts_with('/') || module.path == kVdsoModule)
        reports.push_back(resolve_module(&resolver, module, &places));
      for (auto& [offset, frames] : places) {
        if (frames.empty())
          frames = {{functions_->id_of(text_of(module, offset), "", module.path), 0}};
      }
    }
    return reports;
  }

  const Frames& frames(const Place& place) const {
    return modules_.at(place.module).at(place.offset);
  }

 private:
  using PlacesOfModule = std::map<uint64_t, Frames>;  ///< by offset

  static std::string text_of(const ModuleKey& module, uint64_t offset) {
    if (module.path == kJitModule) return module.build_id;
    return module.path.empty() ? fmt::format("{:#x}", offset)
                               : fmt::format("{}+{:#x}", base_name(module.path), offset);
  }

  SymbolReport resolve_module(symbols::Resolver* resolver, const ModuleKey& module,
                              PlacesOfModule* places) {
    std::vector<uint64_t> offsets;
    std::vector<Frames*> results;
    for (auto& [offset, frames] : *places) {
      offsets.push_back(offset);
      results.push_back(&frames);
    }
    const auto take = [&](size_t index, std::span<const symbols::Frame> frames) {
      for (size_t i = frames.size(); i > 0; --i) {
        const symbols::Frame& frame = frames[i - 1];
        const uint64_t begin = frame.begin_offset != 0 ? frame.begin_offset : offsets[index];
        const std::string name =
            frame.function.empty() ? text_of(module, begin) : std::string(frame.function);
        results[index]->push_back({functions_->id_of(name, frame.file, module.path), frame.line});
      }
    };
    const auto report = resolver->resolve({module.path, module.build_id}, offsets, take);
    const std::string path = spool::clean_text(module.path);
    if (!report) return {path, 0, offsets.size(), 0, spool::clean_text(report.error().message)};
    return {path, report->named_count, report->unnamed_count, report->line_count,
            spool::clean_text(report->remark)};
  }

  FunctionTable* functions_;
  std::map<ModuleKey, PlacesOfModule> modules_;
};

/// Name of code that was made at run time; empty without one.
std::string jit_name(const spool::Process& process, uint64_t address) {
  auto at = process.jit_symbols.upper_bound(address);
  if (at == process.jit_symbols.begin()) return {};
  --at;
  return address < at->second.end ? at->second.name : std::string();
}

Place place_of(const spool::Process& process, const CallPathNode& node) {
  const auto found = process.mappings.find(node.mapping);
  if (found == process.mappings.end()) {
    std::string name = jit_name(process, node.offset);
    return name.empty() ? Place{{}, node.offset} : Place{{kJitModule, std::move(name)}, 0};
  }
  const MappingDefinition& mapping = found->second.definition;
  return {{found->second.path,
           {reinterpret_cast<const char*>(mapping.build_id), mapping.build_id_bytes}},
          node.offset};
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
      for (const CallPathNode& node : paths.nodes) visit(group, node);
    }
  }
}

}  // namespace

void build_call_paths(JobModel* parts, const symbols::DebugSearch& search) {
  Model& model = parts->model;
  FunctionTable functions(&model.functions);
  Places places(&functions);
  for_each_node(model, [&](const Group& group, const CallPathNode& node) {
    places.add(place_of(*group.process, node));
  });
  model.symbol_reports = places.resolve(search);
  Tree tree(&model.call_paths);
  for (Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const spool::CallPaths& paths : group.process->call_paths) {
      for (size_t i = 0; i < paths.nodes.size(); ++i) {
        const CallPathNode& node = paths.nodes[i];
        const auto parent = group.call_path_map.find(node.parent);
        uint32_t at = parent == group.call_path_map.end() ? kNoCallPath : parent->second;
        for (const NamedFrame& frame : places.frames(place_of(*group.process, node)))
          at = tree.child(at, frame);
        group.call_path_map[paths.first_id + static_cast<uint32_t>(i)] = at;
      }
    }
  }
}

}  // namespace aon::writers
