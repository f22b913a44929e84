#include "core/agent/loaded_mpi.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/file.h"

namespace aon::agent {
namespace {

constexpr size_t kMaxMapsBytes = size_t{16} << 20;
constexpr uint64_t kFirstLookNs = 1'000'000'000;

/// What stands before ".so" in the names of MPI's libraries for C. Those of MPICH's ABI are called
/// libmpi (Intel MPI, MVAPICH; https://www.mpich.org/abi), and so is Open MPI's. Cray MPICH has one
/// per compiler (/opt/cray/pe/mpich/VERSION/ofi), with the compiler's version behind some, as
/// libmpi_gnu_123; before its version 8 they began with libmpich. Intel MPI before 2019 had more
/// for threads and for debugging, and IBM Spectrum MPI, which is an Open MPI, has its own name.
constexpr std::string_view kNames[] = {
    "libmpi",      "libmpich",      "libmpi_abi",    "libmpi_cray",
    "libmpi_gnu",  "libmpi_nvidia", "libmpi_intel",  "libmpi_amd",
    "libmpi_aocc", "libmpich_cray", "libmpich_gnu",  "libmpich_intel",
    "libmpi_mt",   "libmpi_dbg",    "libmpi_dbg_mt", "libmpi_ibm",
};

/// `file` without its ".so" and what follows, and without the version of a compiler before that.
/// Empty: it is no library.
std::string_view name_of(std::string_view file) {
  const size_t end = file.find(".so");
  if (end == std::string_view::npos) return {};
  const std::string_view name = file.substr(0, end);
  const size_t last = name.find_last_not_of("0123456789");
  const bool has_version = last != std::string_view::npos && last + 1 < end && name[last] == '_';
  return has_version ? name.substr(0, last) : name;
}

bool is_mpi_library(std::string_view file) {
  const std::string_view name = name_of(file);
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string mpi_library_in(std::string_view maps) {
  for (size_t at = 0; at < maps.size();) {
    const size_t end = std::min(maps.find('\n', at), maps.size());
    std::string_view line = maps.substr(at, end - at);
    at = end + 1;
    const size_t slash = line.rfind('/');
    if (slash == std::string_view::npos) continue;
    line.remove_prefix(slash + 1);
    const std::string_view file = line.substr(0, line.find(' '));  // " (deleted)"
    if (is_mpi_library(file)) return std::string(file);
  }
  return {};
}

std::string mpi_library_of(pid_t pid) {
  const Result<std::string> maps =
      read_text_file("/proc/" + std::to_string(pid) + "/maps", kMaxMapsBytes);
  return maps ? mpi_library_in(*maps) : std::string();
}

void MpiLibraries::want(uint32_t process, pid_t pid, uint64_t cpu_ns) {
  const Found& found = found_.try_emplace(process, Found{kFirstLookNs, {}}).first->second;
  if (found.library.empty() && cpu_ns >= found.due_ns) due_[process] = pid;
}

void MpiLibraries::look() {
  for (const auto& [process, library] : look_.take().value_or(std::map<uint32_t, std::string>()))
    if (const auto found = found_.find(process); found != found_.end())
      found->second.library = library;
  if (due_.empty() || look_.is_asked()) return;
  for (const auto& [process, pid] : due_) found_[process].due_ns *= 2;
  look_.ask([pids = std::exchange(due_, {})] {
    std::map<uint32_t, std::string> libraries;
    for (const auto& [process, pid] : pids) libraries[process] = mpi_library_of(pid);
    return libraries;
  });
}

std::string MpiLibraries::of(uint32_t process) const {
  const auto found = found_.find(process);
  return found != found_.end() ? found->second.library : std::string();
}

}  // namespace aon::agent
