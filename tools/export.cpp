#include <filesystem>

#include "tools/command.h"
#include "writers/hdf5/folded_export.h"
#include "writers/hdf5/slurm_export.h"

namespace aon::tools {

int export_job(const ExportOptions& options) {
  const std::filesystem::path profile = std::filesystem::path(options.dir) / "profile.h5";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(profile, ignored)) {
    return fail("export", options.dir + " has no profile.h5; run: aon finalize " + options.dir,
                kExitUse);
  }
  const Status status = options.folded.empty()
                            ? writers::export_slurm_hdf5(options.dir, options.slurm_hdf5)
                            : writers::export_folded(options.dir, options.folded, options.by_rank);
  return status ? kExitDone : fail("export", status.error().message);
}

}  // namespace aon::tools
