// Stacks of threads that seemed to hang: offsets in files become functions.

#include <charconv>
#include <map>
#include <string_view>

#include "writers/assemble/model_parts.h"
#include "writers/symbols/resolver.h"

namespace aon::writers {
namespace {

/// One line of spool::Stack::frames.
struct Place {
  std::string path;  ///< empty: in nothing that is known
  uint64_t offset = 0;
};

Place place_of(std::string_view line) {
  const size_t plus = line.rfind("+0x");
  Place place;
  if (plus == std::string_view::npos || !line.starts_with('/')) return place;
  place.path = std::string(line.substr(0, plus));
  std::from_chars(line.data() + plus + 3, line.data() + line.size(), place.offset, 16);
  return place;
}

using Names = std::vector<std::string>;                            ///< innermost first
using Modules = std::map<std::string, std::map<uint64_t, Names>>;  ///< by path and offset

void resolve(const symbols::DebugSearch& search, Modules* modules) {
  symbols::ResolverOptions options;
  options.search = search;
  options.wants_lines = false;
  symbols::Resolver resolver(options);
  for (auto& [path, places] : *modules) {
    std::vector<uint64_t> offsets;
    for (const auto& [offset, names] : places) offsets.push_back(offset);
    // What cannot be read stays module and offset.
    static_cast<void>(resolver.resolve(
        {path, ""}, offsets, [&, &all = places](size_t i, std::span<const symbols::Frame> frames) {
          for (const symbols::Frame& frame : frames) {
            if (!frame.function.empty()) all[offsets[i]].emplace_back(frame.function);
          }
        }));
  }
}

}  // namespace

void build_stacks(JobModel* parts, const symbols::DebugSearch& search) {
  Model& model = parts->model;
  Modules modules;
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const auto& [tid, stack] : group.process->stacks) {
      for (const std::string& line : stack.frames) {
        const Place place = place_of(line);
        if (!place.path.empty()) modules[place.path][place.offset];
      }
    }
  }
  resolve(search, &modules);
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const auto& [tid, stack] : group.process->stacks) {
      const clock::ClockMap& clock = parts->clocks[group.node];
      const StackDefinition& told = stack.definition;
      HostStack made{group.id,
                     tid,
                     clock.to_ns(told.ticks),
                     told.quiet_ticks == 0 ? 0 : clock.to_ns(told.quiet_ticks),
                     {},
                     stack.remark};
      for (const std::string& line : stack.frames) {
        const Place place = place_of(line);
        const Names& names = modules[place.path][place.offset];
        if (!names.empty()) {
          made.frames.insert(made.frames.end(), names.begin(), names.end());
        } else {
          made.frames.emplace_back(line.substr(line.rfind('/') + 1));
        }
      }
      model.stacks.push_back(std::move(made));
    }
  }
}

}  // namespace aon::writers
