#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/avoid_list.h"
#include "tools/command.h"

namespace aon::tools {
namespace {

std::string why(const AvoidedProgram& entry) {
  return entry.place.empty() ? "was added" : "died in " + entry.place;
}

int show(const AvoidList& list) {
  const auto entries = list.read();
  if (!entries) return fail("avoid", entries.error().message);
  if (entries->empty()) fmt::print("no program is left alone\n");
  for (const AvoidedProgram& entry : *entries)
    fmt::print("{}\n    {} on {} under aon {}{}\n", entry.program, why(entry), entry.date,
               entry.version, entry.version == AON_VERSION ? "" : "; recorded again by this one");
  return kExitDone;
}

/// What is wrong with the words; empty: nothing.
std::string complaint(const AvoidOptions& options) {
  if (options.add.empty())
    return options.place.empty() ? "" : "--place says where --add PROGRAM died";
  if (options.add.front() != '/')
    return "--add takes an absolute path: '" + options.add + "' would be no program's";
  for (const std::string& program : options.remove) {
    if (resolved_program(program) == resolved_program(options.add))
      return program + " can be added or removed, not both";
  }
  return "";
}

/// A program that is no more there may stand in the list under its own name or its target's.
Status remove_from(AvoidList& list, const std::string& program) {
  Status status = list.remove(program);
  const std::string target = resolved_program(program);
  return status || target == program ? std::move(status) : list.remove(target);
}

}  // namespace

int avoid(const AvoidOptions& options) {
  if (const std::string wrong = complaint(options); !wrong.empty())
    return fail("avoid", wrong, kExitUse);
  AvoidList list(AvoidList::default_path());
  for (const std::string& program : options.remove) {
    if (Status status = remove_from(list, program); !status)
      return fail("avoid", status.error().message);
  }
  if (!options.add.empty()) {
    const std::string program = resolved_program(options.add);
    if (Status status = list.add(program, options.place); !status)
      return fail("avoid", status.error().message);
    if (access(program.c_str(), F_OK) != 0)
      fmt::print(stderr, "aon avoid: {} is added, but no such file is here now\n", program);
  }
  return options.remove.empty() && options.add.empty() ? show(list) : kExitDone;
}

}  // namespace aon::tools
