#include <fmt/format.h>

#include "core/base/avoid_list.h"
#include "tools/command.h"

namespace aon::tools {
namespace {

int show(const AvoidList& list) {
  const auto entries = list.read();
  if (!entries) return fail("avoid", entries.error().message);
  if (entries->empty()) fmt::print("no program is left alone\n");
  for (const AvoidedProgram& entry : *entries)
    fmt::print("{}\n    died in {} on {} under aon {}{}\n", entry.program, entry.place, entry.date,
               entry.version, entry.version == AON_VERSION ? "" : "; recorded again by this one");
  return kExitDone;
}

}  // namespace

int avoid(const AvoidOptions& options) {
  AvoidList list(AvoidList::default_path());
  for (const std::string& program : options.remove) {
    if (Status status = list.remove(program); !status) return fail("avoid", status.error().message);
  }
  if (!options.add.empty()) {
    if (Status status = list.add(options.add, options.place); !status)
      return fail("avoid", status.error().message);
  }
  return options.remove.empty() && options.add.empty() ? show(list) : kExitDone;
}

}  // namespace aon::tools
