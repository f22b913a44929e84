#include "tools/assembly.h"

#include <fmt/format.h>

#include <cstdio>

#include "tools/joining.h"
#include "writers/assemble/assemble.h"

namespace aon::tools {
Status assemble_job(const FinalizeOptions& options) {
  if (Status status = join_directories(options.dirs); !status) return status;
  writers::AssembleOptions wanted;
  wanted.otf2_locations = static_cast<uint32_t>(options.otf2_location_count);
  wanted.uses_debuginfod = options.uses_debuginfod;
  wanted.drops_spool = options.drop_spool;
  wanted.is_snapshot = options.snapshot;
  wanted.disk_cap_bytes = options.disk_bytes;
  const Result<writers::AssembleReport> report = writers::assemble(options.dirs.front(), wanted);
  if (!report) return report.error();
  for (const std::string& warning : report->warnings)
    fmt::print(stderr, "aon finalize: {}\n", warning);
  return {};
}

}  // namespace aon::tools
