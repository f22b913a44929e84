/// What aon-run puts into the program's environment, and nothing else:
///
/// | variable                | value                                | when it was set already     |
/// |-------------------------|--------------------------------------|-----------------------------|
/// | LD_PRELOAD              | the user's, libaon.so, libaon-mpi.so | kept, ours behind it, but   |
/// |                         |                                      | before what wraps MPI, or   |
/// |                         |                                      | is not found                |
/// | ASAN_OPTIONS            | verify_asan_link_order=0, the user's | kept behind ours; left alone|
/// |                         |                                      | with a preload of the user  |
/// | AON_SOCKET, AON_OUTPUT  | socket of the agent, job directory   | replaced                    |
/// | AON_ATTACH_MS,          | the options, where they are not the  | replaced                    |
/// | AON_BUDGET, AON_MEMORY, | default, or the variable says        |                             |
/// | AON_DISK, AON_NCCL_LEVEL| something else; those of a provider  |                             |
/// | and AON_CUPTI_MODE,     | only where it is to record           |                             |
/// | _GRAPH, _CALLS, _MEMORY |                                      |                             |
/// | AON_RECORD_FIXTURE      | --record-fixture, made absolute      | replaced                    |
/// | AON_COUNTERS            | events for the borders of calls      | replaced, or removed        |
/// | AON_SAMPLING_TIMER      | samples a second by timers           | replaced, or removed        |
/// | AON_LEFT_OUT            | of mpi, cupti, nvtx and nccl those   | replaced, or removed        |
/// |                         | that do not record, for an aon-run   |                             |
/// |                         | below this one                       |                             |
/// | AON_STDERR              | under hydra: device and inode of     | replaced, or removed        |
/// |                         | aon-run's standard error             |                             |
/// | CUDA_INJECTION64_PATH,  | our plugin, if installed             | left alone, reported; the   |
/// | NVTX_INJECTION64_PATH,  |                                      | first is unset with "none"; |
/// | NCCL_PROFILER_PLUGIN    |                                      | here or in nccl.conf. Our   |
/// |                         |                                      | own is removed where the    |
/// |                         |                                      | provider is not to record   |
///
/// The user's own preload stands first (a sanitizer insists on it). A tool of theirs that wraps MPI
/// stands behind us: it sees every call, exactly as without us; before us it would pass its calls
/// to PMPI_ functions, and we would see none.   Thread: one, before exec.
#pragma once

#include <string>
#include <vector>

#include "core/base/options.h"
#include "launcher/installation.h"
#include "launcher/launch_id.h"

namespace aon::launcher {

struct Variable {
  std::string name;
  std::string value;
};

struct ProgramEnvironment {
  std::vector<Variable> variables;
  std::vector<std::string> removed;   ///< that an outer launch set, and this one does not
  std::vector<LeftAlone> left_alone;  ///< that the user had set
};

/// True when `name` is to record under --providers and --without.
bool provider_is_wanted(const Options& options, const std::string& name);

/// `socket` empty: no agent; the runtime falls back to a file in the job directory.
ProgramEnvironment program_environment(const Options& options, const Installation& files,
                                       const std::string& socket, const std::string& output_dir,
                                       const Environment& environment);

/// For a program that is not to be recorded: takes back what a TaskProlog, and what ran below it,
/// has put into `environment`; the user's own stays. Nothing to do where there was none.
ProgramEnvironment without_outer_launch(const Environment& environment);

/// What of the outer launch's variables a script took from a program that belongs to it: the
/// preload and the plugins.
std::vector<Variable> lost_variables(const Installation& files, const Environment& environment);

}  // namespace aon::launcher
