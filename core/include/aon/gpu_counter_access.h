/// Who may read the counters of NVIDIA's GPUs. Where the driver keeps them for administrators
/// (RmProfilingAdminOnly), these are processes with CAP_SYS_ADMIN of the host: root in a container
/// mostly has no such capability, and one of a user namespace does not count.
/// Depends on nothing.   Thread: any.   Cost: three small files of /proc.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <charconv>
#include <string>
#include <string_view>

namespace aon {

enum class GpuCounterAccess { kNoDriver, kAdministratorsOnly, kAllowed };

constexpr const char* kGpuCounterRemedy =
    "CAP_SYS_ADMIN (docker: --cap-add SYS_ADMIN); or on the host: echo options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0 > /etc/modprobe.d/nvidia-profiling.conf, then reload "
    "the driver";

/// `status` as /proc/self/status, `uid_map` as /proc/self/uid_map: the host's maps all users to
/// themselves.
inline bool has_sys_admin(std::string_view status, std::string_view uid_map) {
  constexpr unsigned kSysAdmin = 21;  // capabilities(7)
  constexpr std::string_view kName = "\nCapEff:\t";
  constexpr std::string_view kAllUsers = " 4294967295\n";
  const size_t at = status.find(kName);
  if (at == std::string_view::npos || !uid_map.ends_with(kAllUsers)) return false;
  const std::string_view digits = status.substr(at + kName.size());
  uint64_t effective = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), effective, 16);
  return (effective >> kSysAdmin & 1) != 0;
}

/// `parameters` as /proc/driver/nvidia/params; empty: there is no driver.
inline GpuCounterAccess gpu_counter_access(std::string_view parameters, std::string_view status,
                                           std::string_view uid_map) {
  if (parameters.empty()) return GpuCounterAccess::kNoDriver;
  const bool is_restricted = parameters.find("RmProfilingAdminOnly: 1") != std::string_view::npos;
  return is_restricted && !has_sys_admin(status, uid_map) ? GpuCounterAccess::kAdministratorsOnly
                                                          : GpuCounterAccess::kAllowed;
}

/// Of this process.
inline GpuCounterAccess gpu_counter_access() {
  const auto text_of = [](const char* path) {
    std::string text(65536, '\0');
    FILE* file = fopen(path, "r");
    text.resize(file != nullptr ? fread(text.data(), 1, text.size(), file) : 0);
    if (file != nullptr) fclose(file);
    return text;
  };
  return gpu_counter_access(text_of("/proc/driver/nvidia/params"), text_of("/proc/self/status"),
                            text_of("/proc/self/uid_map"));
}

}  // namespace aon
