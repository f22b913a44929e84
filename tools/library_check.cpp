#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "core/base/file.h"
#include "launcher/installation.h"
#include "tools/machine_check.h"

namespace aon::tools {
namespace {

/// Path of the first of `names` that the dynamic linker finds; empty when it finds none. The
/// library stays loaded: this process ends soon.
std::string find_library(std::initializer_list<const char*> names, void** handle = nullptr) {
  for (const char* name : names) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (handle != nullptr) *handle = library;
    return name;
  }
  return {};
}

std::string find_in_path(const char* name) {
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string file = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (access(file.c_str(), X_OK) == 0) return file;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return {};
}

Check check_installation() {
  const Result<launcher::Installation> files = launcher::find_installation();
  if (!files)
    return {"installation", Ability::kNo, files.error().message,
            "cmake --install BUILD --prefix DIR"};
  return {"installation", Ability::kYes, files->library_dir, ""};
}

Check check_open_mpi() {
  const std::string library = find_library({"libmpi.so.40", "libmpi.so.80"});
  const std::string command = find_in_path("mpirun");
  if (library.empty())
    return {"Open MPI", Ability::kNo, "libmpi.so.40 is not found",
            "apt-get install openmpi-bin libopenmpi-dev, or load your site's module"};
  return {"Open MPI", Ability::kYes,
          command.empty() ? library : fmt::format("{}, {}", library, command), ""};
}

Check check_mpich() {
  const std::string library = find_library({"libmpich.so.12", "libmpi.so.12"});
  if (library.empty())
    return {"MPICH, Intel MPI, Cray MPICH", Ability::kNo, "libmpi.so.12 is not found", ""};
  return {"MPICH, Intel MPI, Cray MPICH", Ability::kLimited,
          library + " is here; its calls are not recorded by this version", ""};
}

Check check_hwloc() {
  void* library = nullptr;
  if (find_library({"libhwloc.so.15"}, &library).empty())
    return {"hwloc", Ability::kNo, "libhwloc.so.15 is not found: no topology",
            "apt-get install libhwloc15"};
  const auto version = reinterpret_cast<unsigned (*)()>(dlsym(library, "hwloc_get_api_version"));
  const unsigned number = version != nullptr ? version() : 0;
  return {"hwloc", Ability::kYes,
          fmt::format("{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255), ""};
}

Check check_cuda() {
  if (find_library({"libcuda.so.1"}).empty())
    return {"CUDA driver", Ability::kNo, "libcuda.so.1 is not found", ""};
  return {"CUDA driver", Ability::kYes, "libcuda.so.1", ""};
}

Check check_cupti() {
  const std::string library =
      find_library({"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"});
  if (library.empty())
    return {"CUPTI", Ability::kNo, "libcupti.so is not found",
            "add CUDA's extras/CUPTI/lib64 to LD_LIBRARY_PATH"};
  const Result<std::string> driver = read_text_file("/proc/driver/nvidia/params", 65536);
  const bool is_restricted = driver && driver->find("RmProfilingAdminOnly: 1") != std::string::npos;
  if (is_restricted && geteuid() != 0) {
    return {"CUPTI", Ability::kLimited, library + "; counters are for administrators only",
            "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 > "
            "/etc/modprobe.d/nvidia-profiling.conf, then reload the driver"};
  }
  return {"CUPTI", Ability::kYes, library, ""};
}

Check check_simple(const char* name, std::initializer_list<const char*> libraries) {
  const std::string library = find_library(libraries);
  if (library.empty())
    return {name, Ability::kNo, fmt::format("{} is not found", *libraries.begin()), ""};
  return {name, Ability::kYes, library, ""};
}

Check check_slurm() {
  const std::string command = find_in_path("srun");
  if (command.empty()) return {"Slurm", Ability::kNo, "srun is not in PATH", ""};
  return {"Slurm", Ability::kYes, command, ""};
}

}  // namespace

std::vector<Check> check_libraries() {
  return {check_installation(),
          check_open_mpi(),
          check_mpich(),
          check_hwloc(),
          check_cuda(),
          check_cupti(),
          check_simple("NVML", {"libnvidia-ml.so.1"}),
          check_simple("NCCL", {"libnccl.so.2"}),
          check_slurm()};
}

}  // namespace aon::tools
