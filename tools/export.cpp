#include <filesystem>

#include "tools/command.h"
#include "tools/job_folder.h"
#include "writers/hdf5/folded_export.h"
#include "writers/hdf5/slurm_export.h"

namespace aon::tools {

int export_job(const ExportOptions& options) {
  const std::filesystem::path profile = std::filesystem::path(options.dir) / "profile.h5";
  if (const Status part = find_part(options.dir, "profile.h5"); !part) {
    const bool is_missing = part.error().code == Code::kNotFound;
    return fail("export",
                part.error().message + (is_missing ? "; run: aon finalize " + options.dir : ""),
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
