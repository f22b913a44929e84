/// What NCCL's own files say: `NCCL_CONF_FILE`, else ~/.nccl.conf; then /etc/nccl.conf. A line is
/// NAME=VALUE, and the first one of a name counts (nccl 2.28.9, src/misc/param.cc). The environment
/// comes before them, so what aon-run sets there would silently replace a site's own plugin.
///
/// The home is $HOME here; NCCL asks the database of users, which a static program cannot.
/// Thread: any.   Cost: two files that are opened, where they are there.
#pragma once

#include <string>

#include "launcher/launch_id.h"

namespace aon::launcher {

constexpr char kNcclSystemFile[] = "/etc/nccl.conf";

struct NcclSetting {
  std::string file;
  std::string value;
};

/// The file that gives `name` a value other than ""; both "" when none does.
NcclSetting nccl_file_that_sets(const std::string& name, const Environment& environment,
                                const std::string& system_file = kNcclSystemFile);

}  // namespace aon::launcher
