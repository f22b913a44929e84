#include "tools/command.h"
#include "tools/job_folder.h"
#include "writers/hdf5/folded_export.h"
#include "writers/hdf5/slurm_export.h"

namespace aon::tools {

int export_job(const ExportOptions& options) {
  if (const Status found = find_profile(options.dir); !found)
    return fail("export", printable(found.error().message), kExitUse);
  const Status status = options.folded.empty()
                            ? writers::export_slurm_hdf5(options.dir, options.slurm_hdf5)
                            : writers::export_folded(options.dir, options.folded, options.by_rank);
  return status ? kExitDone : fail("export", printable(status.error().message));
}

}  // namespace aon::tools
