#include "tools/gpu_tools.h"

#include <algorithm>
#include <iterator>

namespace aon::tools {
namespace {

constexpr GpuTool kTools[] = {
    {"libaon-cupti.so", "AON", Use::kOurs},
    {"libToolsInjection", "Nsight Systems", Use::kSubscribes},
    {"libcuda-injection.so", "Nsight Compute", Use::kSubscribes},
    {"libTreeLauncherTarget", "Nsight Compute or Compute Sanitizer", Use::kSubscribes},
    {"libInterceptorInjectionTarget", "Nsight Compute or Compute Sanitizer", Use::kSubscribes},
    {"libsanitizer-collection.so", "Compute Sanitizer", Use::kSubscribes},
    {"libscorep_adapter_cuda", "Score-P", Use::kSubscribes},
    {"libTAU", "TAU", Use::kProfiler},
    {"libhpcrun", "HPCToolkit", Use::kProfiler},
    {"libcudatrace", "Extrae", Use::kSubscribes},
    {"libptcudatrace", "Extrae", Use::kSubscribes},
    {"libcudampitrace", "Extrae", Use::kSubscribes},
    {"libptcudampitrace", "Extrae", Use::kSubscribes},
    {"libcudaompitrace", "Extrae", Use::kSubscribes},
    {"libmap-sampler", "Linaro MAP", Use::kProfiler},
    {"libparcagpucupti", "Parca's agent", Use::kSubscribes},
    {"libkineto", "Kineto", Use::kSubscribes},
    {"libtorch_cpu.so", "PyTorch, for torch.profiler", Use::kMay},
    {"xla_extension.so", "JAX, for jax.profiler", Use::kMay},
    {"xla_cuda_plugin.so", "JAX, for jax.profiler", Use::kMay},
    {"libtensorflow", "TensorFlow, for tf.profiler", Use::kMay},
    {"libcaliper", "Caliper", Use::kMay},
    {"libpapi.so", "PAPI", Use::kMay},
    {"liblikwid", "LIKWID", Use::kMay},
    {"libdcgmmoduleprofiling", "DCGM", Use::kCounters},
};

constexpr std::string_view kEndTool = "end it, for as long as AON is to have the counters";
constexpr std::string_view kPauseDcgm = "dcgmi profile --pause, and --resume behind the job";

constexpr CounterHolder kHolders[] = {
    {"nv-hostengine", "", "DCGM, which has them before Hopper while it watches profiling fields",
     kPauseDcgm},
    {"dcgm-exporter", "", "DCGM, which has them before Hopper while it watches profiling fields",
     kPauseDcgm},
    {"dcgmproftester", "", "DCGM's test of profiling", kEndTool},
    {"ncu", "", "Nsight Compute", kEndTool},
    {"nv-nsight-cu", "", "Nsight Compute", kEndTool},
    {"nsys", "--gpu-metrics", "Nsight Systems with --gpu-metrics-devices", kEndTool},
    {"likwid-perfctr", "", "LIKWID, where it counts on GPUs", kEndTool},
    {"aon-gpu-counter", "", "AON, of a job with --gpu-counters", "wait for the end of that job"},
    {"nvidia-cuda-mps", "", "MPS, under which nobody has them",
     "echo quit | nvidia-cuda-mps-control"},
};

bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

}  // namespace

const GpuTool* find_gpu_tool(std::string_view file_name) {
  const auto* found = std::find_if(std::begin(kTools), std::end(kTools), [&](const GpuTool& tool) {
    return file_name.starts_with(tool.file);
  });
  return found == std::end(kTools) ? nullptr : found;
}

/// As NVIDIA names it, or as packages of Python do that have it in them.
bool is_cupti(std::string_view file_name) {
  return file_name.starts_with("libcupti.so") || file_name.starts_with("libcupti-");
}

bool is_on(const ToolVariable& variable, std::string_view value) {
  constexpr std::string_view kOff[] = {"", "0", "no", "off", "false", "none"};
  switch (variable.means) {
    case Means::kSet:
      return true;
    case Means::kNotOff:
      return std::none_of(std::begin(kOff), std::end(kOff),
                          [&](std::string_view word) { return is_same_word(word, value); });
    case Means::kContains:
      return value.find(variable.word) != std::string_view::npos;
  }
  return false;
}

const CounterHolder* find_counter_holder(std::string_view process) {
  const auto* found =
      std::find_if(std::begin(kHolders), std::end(kHolders), [&](const CounterHolder& holder) {
        // "ncu" and "nsys" begin many names: these are whole
        return holder.process.size() > 4 ? process.starts_with(holder.process)
                                         : process == holder.process;
      });
  return found == std::end(kHolders) ? nullptr : found;
}

}  // namespace aon::tools
