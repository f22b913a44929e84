#include "core/agent/loaded_mpi.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"

namespace aon::agent {
namespace {

constexpr size_t kMaxMapsBytes = size_t{16} << 20;
constexpr uint64_t kFirstLookNs = 1'000'000'000;

}  // namespace

std::string mpi_library_in(std::string_view maps) {
  for (size_t at = 0; at < maps.size();) {
    const size_t end = std::min(maps.find('\n', at), maps.size());
    std::string_view line = maps.substr(at, end - at);
    at = end + 1;
    const size_t slash = line.rfind('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view file = line.substr(slash + 1);
    for (const char* name : {"libmpi.so", "libmpich.so", "libmpi_abi.so"}) {
      if (file.starts_with(name)) return std::string(file.substr(0, file.find(' ')));
    }
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
