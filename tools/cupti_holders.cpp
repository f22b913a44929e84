#include "tools/cupti_holders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/base/file_search.h"
#include "core/base/unique_fd.h"
#include "tools/gpu_tools.h"

namespace aon::tools {
namespace {

constexpr size_t kMaxNamedPids = 3;
constexpr size_t kMaxNamedGroups = 6;
constexpr std::chrono::milliseconds kLookLimit{3000};

void append(std::string* list, const std::string& text) {
  if (list->find(text) == std::string::npos) *list += (list->empty() ? "" : "; ") + text;
}

/// The worst of all that is found counts.
void add(Check* check, Ability ability, const std::string& detail, const std::string& remedy) {
  check->ability = std::max(check->ability, ability);
  append(&check->detail, detail);
  append(&check->remedy, remedy);
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

/// True where the file has the name of CUPTI's function to subscribe.
bool names_cupti(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return file_has(file.get(), 0, static_cast<uint64_t>(status.st_size), {"cuptiSubscribe"});
}

std::string of_tool(std::string_view path) {
  const GpuTool* tool = find_gpu_tool(file_name(path));
  return tool == nullptr ? std::string() : fmt::format(" of {}", tool->name);
}

/// Null and empty are the same for the driver and for NVTX.
std::string value_of(const launcher::Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string() : value;
}

void add_injections(const launcher::Environment& environment, Check* check) {
  const auto others = [&](const char* name) {
    std::string path = value_of(environment, name);
    return file_name(path).starts_with("libaon-") ? std::string() : path;
  };
  const std::string cuda = others("CUDA_INJECTION64_PATH");
  if (!cuda.empty() && cuda != "none") {  // which is how Kineto says that there is no tool
    add(check, Ability::kNo,
        fmt::format("CUDA_INJECTION64_PATH is {}{}: CUDA loads that instead of AON, which then "
                    "records no work of GPUs",
                    cuda, of_tool(cuda)),
        "unset CUDA_INJECTION64_PATH, and start aon-run without the tool that sets it");
  }
  const std::string nvtx = others("NVTX_INJECTION64_PATH");
  if (!nvtx.empty()) {
    add(check, Ability::kLimited,
        fmt::format(
            "NVTX_INJECTION64_PATH is {}{}: NVTX ranges go there and not to AON{}", nvtx,
            of_tool(nvtx),
            names_cupti(nvtx) ? ", and it may subscribe to CUPTI at the first of them" : ""),
        "unset NVTX_INJECTION64_PATH");
  }
}

/// What the loader loads beforehand comes first where it subscribes at once.
void add_preloads(const launcher::Environment& environment, Check* check) {
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT"}) {
    const std::string list = value_of(environment, name);
    std::string_view rest = list;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find_first_of(": "), rest.size());
      const std::string path(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const GpuTool* tool = find_gpu_tool(file_name(path));
      const bool subscribes = tool != nullptr && tool->use == Use::kSubscribes;
      const bool is_ours = file_name(path).starts_with("libaon");
      if (path.empty() || is_ours || (!subscribes && !names_cupti(path))) continue;
      add(check, Ability::kLimited,
          fmt::format("{} has {}{}, which may subscribe before AON", name, path, of_tool(path)),
          fmt::format("take it out of {}; --cupti-mode off where it is wanted", name));
    }
  }
}

void add_variables(const launcher::Environment& environment, Check* check) {
  std::map<std::string_view, std::string> by_tool;  // the variables that tell of it
  for (const ToolVariable& variable : kToolVariables) {
    const char* value = environment(variable.variable);
    if (value == nullptr || !is_on(variable, value)) continue;
    std::string& names = by_tool[variable.name];
    names += (names.empty() ? "" : ", ") + std::string(variable.variable);
  }
  for (const auto& [tool, names] : by_tool) {
    add(check, Ability::kLimited,
        fmt::format(
            "{} in the environment: {} wants the subscription, too, and who is first has it", names,
            tool),
        fmt::format("run without {}; --cupti-mode off where it is wanted", tool));
  }
}

/// "8 processes python3 (PID 1, 2, 3, ...)", of one user.
std::string group_text(const std::vector<const SeenProcess*>& group) {
  std::string pids;
  for (size_t i = 0; i < std::min(group.size(), kMaxNamedPids); ++i)
    pids += (i == 0 ? "" : ", ") + std::to_string(group[i]->pid);
  if (group.size() > kMaxNamedPids) pids += ", ...";
  const SeenProcess& first = *group.front();
  const std::string user =
      first.user == geteuid() ? std::string() : fmt::format(" of user {}", first.user);
  if (group.size() == 1) return fmt::format("{} (PID {}){}", first.name, pids, user);
  return fmt::format("{} processes {} (PID {}){}", group.size(), first.name, pids, user);
}

/// Groups of processes of which the same is to be said, the largest first.
class Groups {
 public:
  void add(const SeenProcess& process, const std::string& what) {
    groups_[fmt::format("{}\n{}\n{}", process.name, process.user, what)].push_back(&process);
  }
  /// Each as "GROUPwhat", at most kMaxNamedGroups of them.
  std::string text() const {
    std::vector<std::pair<std::string, const std::vector<const SeenProcess*>*>> sorted;
    for (const auto& [key, group] : groups_)
      sorted.emplace_back(key.substr(key.rfind('\n') + 1), &group);
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second->size() > b.second->size();
    });
    std::string result;
    for (size_t i = 0; i < std::min(sorted.size(), kMaxNamedGroups); ++i)
      result += (i == 0 ? "" : "; ") + group_text(*sorted[i].second) + sorted[i].first;
    if (sorted.size() > kMaxNamedGroups)
      result += fmt::format("; {} more kinds", sorted.size() - kMaxNamedGroups);
    return result;
  }
  bool is_empty() const { return groups_.empty(); }

 private:
  std::map<std::string, std::vector<const SeenProcess*>> groups_;
};

/// What of `process` is said: ", libcupti.so.13, libToolsInjection64.so of Nsight Systems".
struct Loaded {
  std::string text;
  bool has_client = false;  ///< CUPTI, or a library that is there to subscribe
  bool is_others = false;   ///< of another tool than AON
};

Loaded loaded_by(const SeenProcess& process) {
  Loaded loaded;
  const bool has_cupti = std::any_of(process.libraries.begin(), process.libraries.end(),
                                     [](const std::string& library) { return is_cupti(library); });
  for (const std::string& library : process.libraries) {
    const GpuTool* tool = find_gpu_tool(library);
    const Use use = tool != nullptr ? tool->use : Use::kOurs;
    if (use == Use::kCounters) continue;
    loaded.text += (loaded.text.empty() ? "" : ", ") + library + of_tool(library);
    loaded.is_others |= use == Use::kSubscribes || (use == Use::kProfiler && has_cupti);
    loaded.has_client |= has_cupti || use == Use::kSubscribes || use == Use::kOurs;
  }
  return loaded;
}

std::string what_is_not_seen(const ProcessLook& look, const std::string& hidden) {
  std::string text;
  if (look.closed_count != 0)
    text += fmt::format("; {} more are closed to this user", look.closed_count);
  for (const pid_t pid : look.stuck) text += fmt::format("; PID {} does not answer", pid);
  if (look.unread_count != 0)
    text += fmt::format("; no time was left for {} more", look.unread_count);
  return hidden.empty() ? text : text + "; " + hidden;
}

/// Processes of the node may be there that /proc does not show.
std::string hidden_processes() {
  constexpr ino_t kFirstNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
  struct stat status {};
  if (stat("/proc/self/ns/pid", &status) == 0 && status.st_ino != kFirstNamespace)
    return "processes outside of this container are not seen";
  if (access("/proc/1/status", R_OK) != 0)
    return "other users' processes are hidden (hidepid of /proc)";
  return {};
}

}  // namespace

Check check_cupti_environment(const launcher::Environment& environment) {
  Check check = {"CUPTI's subscription", Ability::kYes, "", ""};
  add_injections(environment, &check);
  add_preloads(environment, &check);
  add_variables(environment, &check);
  if (value_of(environment, "AON_CUPTI_MODE") == "off")
    add(&check, Ability::kLimited, "AON_CUPTI_MODE=off leaves it to others",
        "unset AON_CUPTI_MODE");
  if (check.detail.empty())
    check.detail = "nothing in this environment would take it before AON; each process has its own";
  return check;
}

Check check_cupti_processes(const ProcessLook& look, const std::string& hidden) {
  Check check = {"processes with CUPTI", Ability::kYes, "", ""};
  Groups groups;
  for (const SeenProcess& process : look.processes) {
    const Loaded loaded = loaded_by(process);
    if (!loaded.has_client) continue;
    groups.add(process, ": loaded " + loaded.text);
    if (!loaded.is_others) continue;
    check.ability = Ability::kLimited;
    check.remedy = "run these without the other tool where AON is to record their work of GPUs";
  }
  check.detail =
      groups.is_empty() ? fmt::format("none of {} has loaded it", look.read_count) : groups.text();
  check.detail += what_is_not_seen(look, hidden);
  return check;
}

Check check_counter_holders(const ProcessLook& look, const std::string& hidden) {
  Check check = {"counters of GPUs", Ability::kYes, "", ""};
  Groups groups;
  for (const SeenProcess& process : look.processes) {
    const CounterHolder* holder = find_counter_holder(process.name);
    const bool is_one =
        holder != nullptr && process.arguments.find(holder->argument) != std::string::npos;
    const bool has_dcgm =
        std::any_of(process.libraries.begin(), process.libraries.end(), [](const auto& library) {
          const GpuTool* tool = find_gpu_tool(library);
          return tool != nullptr && tool->use == Use::kCounters;
        });
    if (!is_one && has_dcgm) holder = find_counter_holder("nv-hostengine");
    if (!is_one && !has_dcgm) continue;
    groups.add(process, fmt::format(": {}", holder->tool));
    check.ability = Ability::kLimited;
    append(&check.remedy, std::string(holder->remedy));
  }
  check.detail = groups.is_empty()
                     ? std::string("no process is seen that usually has them; one per GPU can")
                     : "one process per GPU can have them: " + groups.text();
  if (!hidden.empty()) check.detail += "; " + hidden;
  return check;
}

Wanted wanted_of_gpus() {
  return {[](std::string_view file) { return is_cupti(file) || find_gpu_tool(file) != nullptr; },
          [](std::string_view process) { return find_counter_holder(process) != nullptr; }};
}

std::vector<Check> check_cupti_holders() {
  const ProcessLook look = look_at_processes("/proc", wanted_of_gpus(), kLookLimit);
  const std::string hidden = hidden_processes();
  return {check_cupti_environment([](const char* name) { return getenv(name); }),
          check_cupti_processes(look, hidden), check_counter_holders(look, hidden)};
}

}  // namespace aon::tools
