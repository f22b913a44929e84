#include <filesystem>
#include <string>

#include "tools/command.h"
#include "tools/job_folder.h"
#include "tools/ledger_summary.h"
#include "writers/hdf5/folded_export.h"
#include "writers/hdf5/slurm_export.h"

namespace aon::tools {
namespace {

/// Behind the name of a directory without profile.h5.
std::string what_to_do(const std::string& dir) {
  const Result<nlohmann::json> ledger = read_ledger(dir);
  if (ledger && ledger->value("ranks", nlohmann::json::array()).empty())
    return ", for nothing was recorded; why: aon info " + dir;
  return "; run: aon finalize " + dir;
}

}  // namespace

int export_job(const ExportOptions& options) {
  const std::filesystem::path profile = std::filesystem::path(options.dir) / "profile.h5";
  if (const Status part = find_part(options.dir, "profile.h5"); !part) {
    const bool is_missing = part.error().code == Code::kNotFound;
    return fail("export", part.error().message + (is_missing ? what_to_do(options.dir) : ""),
                kExitUse);
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(profile, ignored))
    return fail("export", profile.string() + " is no file", kExitUse);
  const Status status = options.folded.empty()
                            ? writers::export_slurm_hdf5(options.dir, options.slurm_hdf5)
                            : writers::export_folded(options.dir, options.folded, options.by_rank);
  return status ? kExitDone : fail("export", status.error().message);
}

}  // namespace aon::tools
