#include "gpu_counters/library.h"

#include <aon/cupti_library.h>
#include <aon/gpu_counter_access.h>
#include <dlfcn.h>

namespace aon::gpu_counters {
namespace {

constexpr const char* kAddFolder =
    "add the folder with libcupti.so and libnvperf_host.so (CUDA's extras/CUPTI/lib64 or lib64, or "
    "the package nvidia-cuda-cupti) to LD_LIBRARY_PATH";

constexpr const char* kNewer = "CUPTI of CUDA 12.8 or later, in LD_LIBRARY_PATH";

struct CodeWords {
  int code;
  const char* text;
  const char* remedy;
};
constexpr CodeWords kCodes[] = {
    {kInvalidParameter, "invalid parameter", ""},
    {kNotInitialized, "not initialized: no driver, or no libnvperf_host.so", kAddFolder},
    {kHardwareBusy, "the counters are in use by another profiler (one per GPU)",
     "end Nsight, ncu or DCGM's profiling on this node; DCGM: dcgmi profile --pause"},
    {kNotSupported, "not supported by this GPU or in this mode (MPS, confidential computing)",
     "NVML's GPM (provider nvml) tells much of the same on Hopper and later"},
    {kInsufficientPrivileges, "counters are for administrators only", kGpuCounterRemedy},
    {kLegacyNotSupported, "not supported by this GPU", ""},
    {kInvalidChipName, "this CUPTI does not know the chip", "a newer CUPTI, in LD_LIBRARY_PATH"},
    {kUnknown, "unknown error", "dmesg | grep NVRM"},
};

}  // namespace

Problem problem_of(const char* call, int code) {
  if (code == kSuccess) return {};
  for (const CodeWords& words : kCodes) {
    if (words.code != code) continue;
    return {std::string(call) + ": " + words.text + ", CUPTI error " + std::to_string(code),
            words.remedy};
  }
  return {std::string(call) + ": CUPTI error " + std::to_string(code), ""};
}

Problem Library::open() {
  const CuptiLibrary found = open_cupti();
  const std::string more = found.remark[0] != '\0' ? std::string("; ") + found.remark : "";
  if (found.handle == nullptr)
    return {"libcupti.so is not found" + more, found.is_path_wrong ? kCuptiPathRemedy : kAddFolder};
  if (found.is_path_wrong) remark_ = {found.remark, kCuptiPathRemedy};
  const char* missing = nullptr;
#define AON_PM_FIND(member_, symbol_, structure_)                                             \
  functions_.member_ = reinterpret_cast<int (*)(structure_*)>(dlsym(found.handle, #symbol_)); \
  if (functions_.member_ == nullptr) missing = #symbol_;
  AON_PM_FUNCTIONS(AON_PM_FIND)
#undef AON_PM_FIND
  if (missing != nullptr) return {std::string("libcupti has no ") + missing, kNewer};
  uint32_t version = 0;
  if (functions_.version(&version) == kSuccess && version >= kFirstVersion) return {};
  return {"this libcupti (version " + std::to_string(version) +
              ") may read the counters of another GPU than it is asked for",
          kNewer};
}

}  // namespace aon::gpu_counters
