#include <aon/cupti_library.h>
#include <aon/cupti_version.h>
#include <aon/gpu_counter_access.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "launcher/environment.h"
#include "launcher/installation.h"
#include "tools/library_probe.h"
#include "tools/machine_check.h"

namespace aon::tools {
namespace {

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

std::string absence(const LibraryProbe& library, const char* usual_name) {
  return library.problem.empty() ? fmt::format("{} is not found", usual_name) : library.problem;
}

Check check_open_mpi() {
  const LibraryProbe library = probe_library({"libmpi.so.40", "libmpi.so.80"});
  const std::string command = find_in_path("mpirun");
  if (library.name.empty())
    return {"Open MPI", Ability::kNo, absence(library, "libmpi.so.40"),
            "apt-get install openmpi-bin libopenmpi-dev, or load your site's module"};
  return {"Open MPI", Ability::kYes,
          command.empty() ? library.name : fmt::format("{}, {}", library.name, command), ""};
}

Check check_mpich() {
  const LibraryProbe library = probe_library({"libmpich.so.12", "libmpi.so.12"});
  const char* name = "MPICH, Intel MPI, Cray MPICH";
  if (library.name.empty()) return {name, Ability::kNo, absence(library, "libmpi.so.12"), ""};
  return {name, Ability::kYes, library.name, ""};
}

Check check_hwloc() {
  const LibraryProbe library = probe_library({"libhwloc.so.15"}, {"hwloc_get_api_version"});
  if (library.name.empty())
    return {"hwloc", Ability::kNo, absence(library, "libhwloc.so.15") + ": no topology",
            "apt-get install libhwloc15"};
  const unsigned number = library.version;
  return {"hwloc", Ability::kYes,
          fmt::format("{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255), ""};
}

Check check_simple(const char* name, const char* file) {
  const LibraryProbe library = probe_library({file});
  if (library.name.empty()) return {name, Ability::kNo, absence(library, file), ""};
  return {name, Ability::kYes, library.name, ""};
}

Check check_slurm() {
  const std::string command = find_in_path("srun");
  if (command.empty()) return {"Slurm", Ability::kNo, "srun is not in PATH", ""};
  return {"Slurm", Ability::kYes, command, ""};
}

/// "version 130001 (CUDA 13.0 update 1)"; before CUDA 13 numbers do not tell of which one.
std::string cupti_version_text(unsigned version) {
  if (version < 130000) return fmt::format("version {} (CUDA 12 or older)", version);
  const unsigned update = version % 100;
  return fmt::format("version {} (CUDA {}.{}{})", version, version / 10000, version / 100 % 100,
                     update != 0 ? fmt::format(" update {}", update) : "");
}

/// What this version does not do, and whether others can use it at the same time.
std::string cupti_limits(unsigned version, unsigned driver_version) {
  std::string text;
  if (version < kCuptiWithSafeFlush) text += "; it may crash when records are flushed";
  if (version < kCuptiWithGraphs) text += "; graphs are recorded node by node";
  if (version == kCuptiWithoutDeviceWaits) text += "; it does not tell of waiting for a device";
  const bool is_old = version < kCuptiWithSubscribers;
  const bool is_driver_old = driver_version != 0 && driver_version < kDriverWithSubscribers;
  if (!is_old && driver_version == 0)
    return text + "; several clients at a time with a driver of r610 or later";
  if (!is_old && !is_driver_old) return text + "; several clients at a time";
  return text + fmt::format("; one client at a time (several: {}a driver of r610 or later)",
                            is_old ? "CUPTI of CUDA 13.3 and " : "");
}

/// Versions before 2.9 have numbers of another form, below all of these.
Check check_nccl_library(const LibraryProbe& library) {
  constexpr unsigned kFirstWithPlugin = 22300;
  constexpr unsigned kFirstWithGpuTimes = 22700;
  if (library.name.empty()) return {"NCCL", Ability::kNo, absence(library, "libnccl.so.2"), ""};
  const unsigned number = library.version;
  Check check = {"NCCL", Ability::kYes, library.name, ""};
  if (number == 0) return check;
  check.detail += fmt::format(", {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  if (number >= kFirstWithGpuTimes) return check;
  check.ability = Ability::kLimited;
  check.detail += number >= kFirstWithPlugin
                      ? ": no times on the GPU, no bus bandwidth, ranks are not joined"
                      : ": takes no profiler plugin, only its NVTX ranges are recorded";
  check.remedy = "NCCL 2.27 or later";
  return check;
}

/// What aon-run would find here.
provider::Exclusion find_left_alone(const std::string& name) {
  const Result<launcher::Installation> files = launcher::find_installation();
  if (!files) return {};
  const auto environment = [](const char* variable) { return getenv(variable); };
  const auto wanted = launcher::program_environment({}, *files, "", "", environment);
  for (const LeftAlone& one : wanted.left_alone) {
    if (one.provider == name) return provider::left_alone(one);
  }
  return {};
}

}  // namespace

Check check_cupti(const LibraryProbe& library, bool are_counters_restricted,
                  unsigned driver_version) {
  const bool is_there = !library.name.empty();
  Check check = {"CUPTI", is_there ? Ability::kYes : Ability::kNo,
                 is_there ? library.name : absence(library, "libcupti.so.13 or .so.12"),
                 is_there ? "" : "add CUDA's extras/CUPTI/lib64 to LD_LIBRARY_PATH"};
  if (is_there && library.version != 0)
    check.detail +=
        ", " + cupti_version_text(library.version) + cupti_limits(library.version, driver_version);
  if (!library.remark.empty()) check.detail += "; " + library.remark;
  if (library.is_path_wrong || !library.problem.empty()) check.remedy = kCuptiPathRemedy;
  if (are_counters_restricted) {
    check.detail += "; counters are for administrators only";
    check.remedy += check.remedy.empty() ? "" : "; ";
    check.remedy += kGpuCounterRemedy;
  }
  if (is_there && !check.remedy.empty()) check.ability = Ability::kLimited;
  return check;
}

Check check_nccl(const LibraryProbe& library, const provider::Exclusion& plugin) {
  Check check = check_nccl_library(library);
  if (plugin.reason.empty()) return check;
  check.ability = Ability::kNo;
  check.detail += "; " + plugin.reason + ": NCCL's operations are not recorded";
  check.remedy += (check.remedy.empty() ? "" : "; ") + plugin.remedy;
  return check;
}

Check check_cuda_driver(const LibraryProbe& library) {
  if (library.name.empty())
    return {"CUDA driver", Ability::kNo, absence(library, "libcuda.so.1"), ""};
  Check check = {"CUDA driver", Ability::kYes, library.name, ""};
  if (const unsigned number = library.version; number != 0)
    check.detail += fmt::format(", for CUDA up to {}.{}", number / 1000, number % 1000 / 10);
  return check;
}

std::vector<Check> check_libraries() {
  const LibraryProbe driver =
      probe_library({"libcuda.so.1"}, {"cuDriverGetVersion", VersionFunction::kFills});
  return {check_installation(),
          check_open_mpi(),
          check_mpich(),
          check_hwloc(),
          check_cuda_driver(driver),
          check_cupti(probe_cupti(), gpu_counter_access() == GpuCounterAccess::kAdministratorsOnly,
                      driver.version),
          check_simple("NVML", "libnvidia-ml.so.1"),
          check_nccl(probe_library({"libnccl.so.2"}, {"ncclGetVersion", VersionFunction::kFills}),
                     find_left_alone("nccl")),
          check_slurm()};
}

}  // namespace aon::tools
