#include "launcher/environment.h"

#include <string_view>

#include "core/agent/protocol.h"
#include "core/provider/names.h"

namespace aon::launcher {
namespace {

/// True when the list of paths, separated as ld.so accepts it, has `path`.
bool list_has(std::string_view list, std::string_view path) {
  size_t begin = 0;
  while (begin <= list.size()) {
    size_t end = list.find_first_of(": ", begin);
    if (end == std::string_view::npos) end = list.size();
    if (list.substr(begin, end - begin) == path) return true;
    begin = end + 1;
  }
  return false;
}

std::string with_preload(const char* users, const std::string& ours) {
  if (users == nullptr || *users == '\0') return ours;
  if (list_has(users, ours)) return users;
  return std::string(users) + ":" + ours;
}

void add_plugin(const char* provider, const char* name, const std::string& path,
                const Options& options, const Environment& environment,
                ProgramEnvironment& result) {
  if (path.empty() || !provider_is_wanted(options, provider)) return;
  const char* users = environment(name);
  if (users == nullptr || *users == '\0') {
    result.variables.push_back({name, path});
  } else if (path != users) {
    result.left_alone.push_back({provider, name});
  }
}

}  // namespace

bool provider_is_wanted(const Options& options, const std::string& name) {
  return provider::is_wanted({options.providers, options.without}, name);
}

ProgramEnvironment program_environment(const Options& options, const Installation& files,
                                       const std::string& socket, const std::string& output_dir,
                                       const Environment& environment) {
  ProgramEnvironment result;
  const std::string& library =
      provider_is_wanted(options, "mpi") ? files.mpi_library : files.runtime_library;
  result.variables.push_back({"LD_PRELOAD", with_preload(environment("LD_PRELOAD"), library)});
  if (!socket.empty()) result.variables.push_back({"AON_SOCKET", socket});
  result.variables.push_back({"AON_OUTPUT", output_dir});
  if (options.attach_ms != 0 && options.attach_ms != agent::kAttachTimeoutMs) {
    result.variables.push_back({"AON_ATTACH_MS", std::to_string(options.attach_ms)});
  }
  add_plugin("cupti", "CUDA_INJECTION64_PATH", files.cuda_injection, options, environment, result);
  add_plugin("nvtx", "NVTX_INJECTION64_PATH", files.nvtx_injection, options, environment, result);
  add_plugin("nccl", "NCCL_PROFILER_PLUGIN", files.nccl_plugin, options, environment, result);
  return result;
}

}  // namespace aon::launcher
