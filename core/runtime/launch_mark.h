/// Which launch a process belongs to, for its own file where no agent took it: where a TaskProlog
/// put AON into the environment, AON_OUTPUT may be the folder of another launch of the job.
///
/// The mark is the FNV-1a hash, 64 bit, of what DIR/.launch of the launch says
/// (launcher/job_directory.h), by the rules of launcher/launch_id.h for an id that all ranks find
/// in their environment. Where the id comes from elsewhere (hydra's proxy, a parent, the process
/// itself), and behind aon-run, which has found the launch's folder already, it is 0: not known.
#pragma once

#include <cstdint>

namespace aon::runtime {

/// `read` is getenv, or a table in tests. Allocates nothing.   Cost: a microsecond; below PMI one
/// small file of /proc.
uint64_t launch_mark(const char* (*read)(const char* name));

}  // namespace aon::runtime
