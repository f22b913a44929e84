#include "launcher/installation.h"

#include <limits.h>
#include <unistd.h>

#include <initializer_list>

#include "launcher/runtime_folder.h"

namespace aon::launcher {
namespace {

bool is_readable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// First of `folders` below `prefix` that holds `name`; empty when none does.
std::string find_below(const std::string& prefix, std::initializer_list<const char*> folders,
                       const std::string& name) {
  for (const char* folder : folders) {
    std::string path = prefix + "/" + folder + "/" + name;
    if (is_readable(path)) return path;
  }
  return {};
}

}  // namespace

Result<Installation> find_installation() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return Error{Code::kNotFound, "cannot read /proc/self/exe"};
  const std::string program(self, static_cast<size_t>(length));
  const std::string prefix = folder_of(folder_of(program));
  Installation files;
  files.agent = find_below(prefix, {"bin", "libexec/aon", "libexec"}, "aon-agent");
  files.mpi_library = find_below(prefix, {"lib", "lib64", "lib/x86_64-linux-gnu"}, kMpiLibrary);
  if (files.agent.empty())
    return Error{Code::kNotFound, "aon-agent is not installed beside " + program};
  if (files.mpi_library.empty())
    return Error{Code::kNotFound, "libaon-mpi.so is not installed in " + prefix + "/lib"};
  const Result<std::string> library_dir = preloadable_folder(folder_of(files.mpi_library));
  if (!library_dir) return library_dir.error();
  files.library_dir = *library_dir;
  files.mpi_library = files.library_dir + "/" + kMpiLibrary;
  files.runtime_library = files.library_dir + "/" + kRuntimeLibrary;
  const auto optional_file = [&](const char* name) {
    std::string path = files.library_dir + "/" + name;
    return is_readable(path) ? path : std::string();
  };
  files.cuda_injection = optional_file(kCuptiFile);
  files.nvtx_injection = optional_file(kNvtxFile);
  files.nccl_plugin = optional_file(kNcclFile);
  return files;
}

}  // namespace aon::launcher
