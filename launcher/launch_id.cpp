#include "launcher/launch_id.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/base/containers.h"
#include "core/base/file.h"
#include "core/base/lease.h"

namespace aon::launcher {
namespace {

constexpr size_t kMaxIdBytes = 96;
constexpr unsigned long long kFirstSpecialStep = 0xfffffff0ull;  ///< batch, extern, interactive

/// `text` with everything that does not belong into a file name replaced.
std::string file_name_part(std::string_view text) {
  std::string name(text.substr(0, kMaxIdBytes));
  for (char& c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_' || c == '@';
    if (!is_plain) c = '_';
  }
  return name;
}

const char* value(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

bool has_any(const Environment& environment, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return value(environment, name) != nullptr; });
}

uint32_t first_number(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = value(environment, name);
    if (text == nullptr) continue;
    const unsigned long number = strtoul(text, nullptr, 10);
    if (number > 0 && number < (1u << 30)) return static_cast<uint32_t>(number);
  }
  return 0;
}

/// Of a process of our PID namespace.
std::string process_identity(int32_t pid) {
  return file_name_part(host_of_pids()) + "-" + std::to_string(pid) + "-" +
         std::to_string(process_start_time_ticks(pid));
}

/// Id of a step that srun started; empty in a batch script, whose "step" is no launch.
std::string slurm_step(const Environment& environment) {
  const char* job = value(environment, "SLURM_JOB_ID");
  const char* step = value(environment, "SLURM_STEP_ID");
  if (job == nullptr || step == nullptr) return {};
  if (strtoull(step, nullptr, 10) >= kFirstSpecialStep) return {};
  return file_name_part(std::string(job) + "." + step);
}

/// torchrun without a rendezvous id calls itself "none", which says nothing.
std::string torchrun_id(const Environment& environment) {
  const char* run = value(environment, "TORCHELASTIC_RUN_ID");
  if (run == nullptr || strcmp(run, "none") == 0) return {};
  const char* restart = value(environment, "TORCHELASTIC_RESTART_COUNT");
  return file_name_part(std::string(run) + "." + (restart == nullptr ? "0" : restart));
}

/// Word after `name` in a command line as /proc has it: words that end with a zero byte.
std::string word_after(const std::string& command_line, const std::string& name) {
  const size_t at = command_line.find('\0' + name + '\0');
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 2;
  return command_line.substr(begin, command_line.find('\0', begin) - begin);
}

/// A launch by hydra whose proxy is our parent: all proxies are told the same port.
void find_hydra_launch(const Environment& environment, int32_t parent_pid, Launch* launch) {
  if (!has_any(environment, {"PMI_RANK", "PMI_ID", "PMI_FD"})) return;
  const auto command_line = read_text_file("/proc/" + std::to_string(parent_pid) + "/cmdline");
  if (!command_line || command_line->find("proxy") == std::string::npos) return;
  const std::string port = word_after(*command_line, "--control-port");
  const std::string group = word_after(*command_line, "--pgid");
  if (port.empty() || group.empty()) return;
  std::string id = "hydra-" + port + "." + group;
  std::replace(id.begin(), id.end(), ':', '.');
  launch->id = file_name_part(id);
  launch->may_come_again = true;
  // Hosts that are one machine have a proxy each.
  launch->part = file_name_part(local_host_name()) + "." +
                 file_name_part(word_after(*command_line, "--proxy-id"));
  launch->part_evidence = process_identity(parent_pid);
}

bool is_a_rank(const Environment& environment) {
  return has_any(environment,
                 {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID", "PMI_FD",
                  "MV2_COMM_WORLD_RANK", "PALS_RANKID", "FLUX_TASK_RANK", "TORCHELASTIC_RUN_ID"});
}

/// What Open MPI, Slurm or torchrun call the launch on all nodes.
void find_common_id(const Environment& environment, Launch* launch) {
  if (const char* space = value(environment, "PMIX_NAMESPACE")) {
    launch->id = file_name_part(space);
    const char* uri = value(environment, "OMPI_MCA_orte_hnp_uri");
    launch->evidence = uri != nullptr ? uri : "";
    return;
  }
  launch->id = slurm_step(environment);
  if (launch->id.empty()) launch->id = torchrun_id(environment);
}

}  // namespace

uint32_t slurm_tasks_of_node(const char* tasks_per_node, uint32_t node) {
  if (tasks_per_node == nullptr) return 0;
  const char* cursor = tasks_per_node;
  uint64_t first_node = 0;
  while (*cursor != '\0') {
    char* end = nullptr;
    const unsigned long tasks = strtoul(cursor, &end, 10);
    if (end == cursor) return 0;
    unsigned long nodes = 1;
    if (strncmp(end, "(x", 2) == 0) {
      nodes = strtoul(end + 2, &end, 10);
      if (*end++ != ')') return 0;
    }
    first_node += nodes;
    if (node < first_node) return static_cast<uint32_t>(tasks);
    if (*end != ',') return 0;
    cursor = end + 1;
  }
  return 0;
}

Launch find_launch(const Environment& environment) {
  return find_launch(environment, getpid(), getppid());
}

Launch find_launch(const Environment& environment, int32_t pid, int32_t parent_pid) {
  Launch launch;
  launch.local_rank_count = first_number(
      environment, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
                    "PALS_LOCAL_SIZE", "LOCAL_WORLD_SIZE"});
  launch.world_size =
      first_number(environment, {"OMPI_COMM_WORLD_SIZE", "PALS_SIZE", "FLUX_JOB_SIZE",
                                 "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"});
  // First: srun may have started hydra's proxies, with an environment of its own.
  find_hydra_launch(environment, parent_pid, &launch);
  if (!launch.may_come_again) find_common_id(environment, &launch);
  // A requeued job has the numbers of its first run.
  if (const char* restart = value(environment, "SLURM_RESTART_COUNT"))
    launch.evidence += std::string(launch.evidence.empty() ? "" : " ") + "restart " + restart;
  launch.is_of_all_nodes = !launch.id.empty() && !launch.may_come_again;
  launch.has_launcher = launch.is_of_all_nodes || is_a_rank(environment);
  if (launch.id.empty() && launch.has_launcher && parent_pid <= 0) {
    // A launcher outside of our PID namespace is 0 to all of its ranks, in each of its launches;
    // those that it sent into one container have the first process of that in common.
    launch.id = process_identity(1);
    launch.may_come_again = true;
  }
  if (launch.id.empty()) launch.id = process_identity(launch.has_launcher ? parent_pid : pid);
  if (!slurm_step(environment).empty() && launch.local_rank_count == 0) {
    const char* node = value(environment, "SLURM_NODEID");
    launch.local_rank_count = slurm_tasks_of_node(
        value(environment, "SLURM_STEP_TASKS_PER_NODE"),
        node == nullptr ? 0 : static_cast<uint32_t>(strtoul(node, nullptr, 10)));
    if (launch.world_size == 0)
      launch.world_size = first_number(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  }
  return launch;
}

}  // namespace aon::launcher
