/// Tools of others that are a client of CUPTI, or hold the GPUs' counters: by their files, the
/// variables that they set, and their processes. What these mean is said no further than it goes:
/// a library that is loaded need not have subscribed.
/// Thread: any.
#pragma once

#include <string_view>

namespace aon::tools {

enum class Use {
  kOurs,
  kSubscribes,  ///< that is what it is loaded for
  kProfiler,    ///< of CPUs, too: a client where CUPTI is loaded
  kMay,         ///< no profiler; a part of it is one when it is asked to
  kCounters,
};

struct GpuTool {
  std::string_view file;  ///< the names of its files begin so
  std::string_view name;
  Use use;
};

/// Null: not known.
const GpuTool* find_gpu_tool(std::string_view file_name);
bool is_cupti(std::string_view file_name);

enum class Means {
  kSet,       ///< that it is there
  kNotOff,    ///< any value but those for no
  kContains,  ///< a value with `word`
};

/// A variable of the environment by which a tool makes itself a client.
struct ToolVariable {
  const char* variable;
  Means means;
  std::string_view word;
  std::string_view name;  ///< of the tool
};

/// Whether `value` of `variable` means that the tool is on.
bool is_on(const ToolVariable& variable, std::string_view value);

constexpr ToolVariable kToolVariables[] = {
    {"NSYS_PROFILING_SESSION_ID", Means::kSet, "", "Nsight Systems"},
    {"NV_NSIGHT_INJECTION_TRANSPORT_TYPE", Means::kSet, "", "Nsight Compute"},
    {"NV_NSIGHT_INJECTION_PORT_BASE", Means::kSet, "", "Nsight Compute"},
    {"NVPROF_ID", Means::kSet, "", "nvprof"},
    {"KINETO_USE_DAEMON", Means::kNotOff, "", "Kineto of PyTorch (for dynolog)"},
    {"SCOREP_CUDA_ENABLE", Means::kNotOff, "", "Score-P"},
    {"HPCRUN_EVENT_LIST", Means::kContains, "gpu=", "HPCToolkit"},
    {"CALI_CONFIG", Means::kContains, "cuda", "Caliper"},
    {"CALI_SERVICES_ENABLE", Means::kContains, "cupti", "Caliper"},
};

/// A process that usually has the hardware that counts in a GPU, which is one client's at a time.
struct CounterHolder {
  std::string_view process;   ///< its name begins so; 15 characters at most
  std::string_view argument;  ///< only with this one; "": in any case
  std::string_view tool;
  std::string_view remedy;
};

/// Null: not known.
const CounterHolder* find_counter_holder(std::string_view process);

}  // namespace aon::tools
