#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tools/assembly.h"
#include "tools/command.h"
#include "tools/job_folder.h"
#include "tools/joining.h"
#include "tools/ledger_summary.h"
#include "tools/live_job.h"
#include "tools/owner_rights.h"
#include "writers/assemble/assemble.h"

namespace aon::tools {
namespace {

/// Arrays of that size go back to the system when they are freed; as it is, glibc keeps more and
/// more of the large ones.
constexpr int kAloneBytes = 1 << 20;
/// Of what was freed at the end of the heap: HDF5 takes and frees some 300 KiB for each chunk.
constexpr int kKeptBytes = 4 << 20;

/// Exit code when one of the directories cannot be used now, else kExitDone.
int check_directories(const FinalizeOptions& options) {
  for (const std::string& dir : options.dirs) {
    if (const Status spool = find_part(dir, "spool"); !spool) {
      if (spool.error().code != Code::kNotFound)
        return fail("finalize", spool.error().message, kExitUse);
      const bool is_dropped = read_ledger(dir).has_value();  // after the archive was written
      if (is_dropped && options.dirs.size() == 1) continue;
      return fail(
          "finalize",
          dir + (is_dropped ? " has no spool/ any more: it cannot be joined" : without_spool(dir)),
          kExitUse);
    }
    if (options.snapshot) continue;
    const std::optional<LiveOwner> live = find_live_owner(dir, options.from_agent ? getppid() : 0);
    if (live) {
      return fail("finalize",
                  fmt::format("{}: {}{}", dir, describe(*live),
                              live->role == "agent" ? "; --snapshot writes what is there now" : ""),
                  kExitLive);
    }
  }
  return kExitDone;
}

void print_summary(const FinalizeOptions& options) {
  if (options.is_quiet || options.from_agent) return;
  fputs(summary_of(options.dirs.front()).c_str(), stdout);
}

/// Tells of writers that failed.
int fail_in_part(const FinalizeOptions& options, const std::vector<std::string>& failures) {
  for (size_t i = 1; i < failures.size(); ++i)
    fmt::print(stderr, "aon finalize: {}\n", failures[i]);
  return fail("finalize", failures.front() + "; the rest is written",
              options.from_agent ? kExitInPart : kExitFailed);
}

/// A job that nobody works on any more is whole: a snapshot of it would only claim less.
bool is_live(const FinalizeOptions& options) {
  return std::any_of(options.dirs.begin(), options.dirs.end(),
                     [](const std::string& dir) { return find_live_owner(dir, 0).has_value(); });
}

}  // namespace

int finalize(const FinalizeOptions& wanted) {
  mallopt(M_MMAP_THRESHOLD, kAloneBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  FinalizeOptions options = wanted;
  take_owner_rights("finalize", options.dirs);
  if (options.is_share) {
    const Status status = writers::join_assembly(options.dirs.front(), options.node);
    return status ? kExitDone : fail("finalize", status.error().message, kExitFailed);
  }
  options.snapshot = wanted.snapshot && is_live(wanted);
  if (const int code = check_directories(options); code != kExitDone) return code;
  if (Status status = check_one_launch(options.dirs); !status) {
    const bool is_use = status.error().code == Code::kInvalid;
    return fail("finalize", status.error().message, is_use ? kExitUse : kExitFailed);
  }
  const std::string& dir = options.dirs.front();
  std::error_code ignored;
  if (!std::filesystem::is_directory(dir + "/spool", ignored)) {
    // Of one that was killed after it dropped the spool.
    const Status status = complete_dropped(dir);
    if (!status && status.error().code == Code::kBusy)  // its maker is at the last step
      return fail("finalize", status.error().message, kExitLive);
    print_summary(options);
    return kExitDone;
  }
  const Result<std::vector<std::string>> failures = assemble_job(options);
  if (!failures) {
    const bool is_busy = failures.error().code == Code::kBusy;
    return fail("finalize", failures.error().message, is_busy ? kExitLive : kExitFailed);
  }
  print_summary(options);
  return failures->empty() ? kExitDone : fail_in_part(options, *failures);
}

}  // namespace aon::tools
