#include "launcher/environment.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "core/agent/protocol.h"
#include "core/base/file.h"
#include "core/base/file_search.h"
#include "core/base/unique_fd.h"
#include "core/provider/names.h"
#include "launcher/events.h"
#include "launcher/nccl_conf.h"
#include "launcher/waiter.h"

namespace aon::launcher {
namespace {

// The runtime and the plugins take these when their variable is not set; the table of options says
// the same.
constexpr double kDefaultBudgetPercent = 1;
constexpr uint64_t kDefaultMemoryBytes = 8u << 20;
constexpr uint64_t kDefaultDiskBytes = 1u << 30;
constexpr const char* kDefaultNcclLevel = "api";
constexpr const char* kDefaultCuptiMode = "exclusive";
constexpr const char* kDefaultCuptiGraph = "graph";
constexpr uint64_t kDefaultCuptiMemoryMib = 256;
constexpr size_t kMaxCacheBytes = 64u << 20;
const std::string kAsanOption = "verify_asan_link_order=0";

/// Takes the value at a place of a file; false beyond its end.
template <class T>
bool take(int file, uint64_t at, T* value) {
  const Result<size_t> count = read_at(file, value, sizeof(T), at);
  return count && *count == sizeof(T);
}

/// A range of addresses, or of a file's bytes.
struct Range {
  uint64_t begin = 0;
  uint64_t byte_count = 0;
};

/// What the loader is told of a library: the addresses of its names.
Range names_told_at(int file, const Elf64_Phdr& dynamic) {
  Range names;
  Elf64_Dyn entry;
  for (uint64_t at = 0; at < dynamic.p_filesz; at += sizeof(entry)) {
    if (!take(file, dynamic.p_offset + at, &entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) names.begin = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) names.byte_count = entry.d_un.d_val;
  }
  return names;
}

/// Where the names are of what a library has and needs, each behind a zero; all of a file that is
/// no library of 64 bits. Some preload hundreds of MiB, of which the loader reads little.
Range names_in(int file) {
  constexpr Range kAll = {0, UINT64_MAX};
  Elf64_Ehdr header;
  if (!take(file, 0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return kAll;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  Range names;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!take(file, header.e_phoff + i * sizeof(Elf64_Phdr), &segments[i])) return kAll;
    if (segments[i].p_type == PT_DYNAMIC) names = names_told_at(file, segments[i]);
  }
  for (const Elf64_Phdr& segment : segments) {
    const uint64_t at = names.begin - segment.p_vaddr;
    const bool is_here =
        segment.p_type == PT_LOAD && names.begin >= segment.p_vaddr && at < segment.p_filesz;
    if (is_here && names.byte_count != 0) return {segment.p_offset + at, names.byte_count};
  }
  return kAll;
}

/// True when a name of the file begins with MPI_ or PMPI_: a library that wraps or calls MPI.
bool names_mpi(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const Range names = names_in(file.get());
  return file_has(file.get(), names.begin, names.byte_count, {{"\0MPI_", 5}, {"\0PMPI_", 6}});
}

/// What stands between `separators`, but for what is empty.
std::vector<std::string> items_of(std::string_view text, const char* separators) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (end != 0) items.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

/// What ldconfig found under `name`, whichever of it the loader would take. The cache holds whole
/// paths, with a zero behind each.
std::vector<std::string> files_of_cache(const std::string& name) {
  std::vector<std::string> files;
  const Result<std::string> cache = read_text_file("/etc/ld.so.cache", kMaxCacheBytes);
  if (!cache) return files;
  const std::string_view bytes = *cache;
  const std::string end = "/" + name + '\0';
  for (size_t at = bytes.find(end); at != bytes.npos; at = bytes.find(end, at + 1)) {
    const size_t start = bytes.rfind('\0', at) + 1;
    files.emplace_back(bytes.substr(start, at + end.size() - 1 - start));
  }
  return files;
}

/// What the loader may open for `name` of a preload; empty where that is not known: $ORIGIN is
/// another folder for each program.
std::vector<std::string> files_of(const std::string& name, const Environment& environment) {
  if (name.find('$') != name.npos) return {};
  if (name.find('/') != name.npos) return {name};
  const char* folders = environment("LD_LIBRARY_PATH");
  for (const std::string& folder : items_of(folders != nullptr ? folders : "", ":;")) {
    const std::string path = folder + "/" + name;
    if (access(path.c_str(), R_OK) == 0) return {path};
  }
  return files_of_cache(name);
}

/// It insists on the first place, and wraps no MPI.
bool is_sanitizer(const std::string& name) {
  const std::string file = std::filesystem::path(name).filename();
  return file.starts_with("libasan.so") || file.starts_with("libclang_rt.asan");
}

bool may_come_first(const std::string& name, const Environment& environment) {
  if (is_sanitizer(name)) return true;
  const std::vector<std::string> files = files_of(name, environment);
  return !files.empty() && std::none_of(files.begin(), files.end(), names_mpi);
}

bool is_own_library(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename();
  return file == kMpiLibrary || file == kRuntimeLibrary;
}

/// The user's libraries keep their order and come first, but for MPI tools: these call PMPI_
/// functions, so that nothing behind them hears of a call. We pass calls on to them, and to what is
/// not found, which may be one. `ours` names libaon.so, too, which libaon-mpi.so needs: searching
/// it costs each program ten opens that fail.
std::string with_preload(const Environment& environment, const std::string& ours) {
  const char* users = environment("LD_PRELOAD");
  std::string before;
  std::string behind;
  for (const std::string& path : items_of(users != nullptr ? users : "", ": ")) {
    if (is_own_library(path)) continue;
    if (behind.empty() && may_come_first(path, environment)) {
      before += path + ":";
    } else {
      behind += ":" + path;
    }
  }
  return before + ours + behind;
}

/// Programs of g++'s AddressSanitizer, or of clang's with -shared-libasan, end at once when another
/// library than its own stands first. Ours may: it replaces nothing that the sanitizer replaces.
/// This is switched off where we alone stand before it, so that its word on the user's own preload
/// stays. Why its library is not put before ours: programs that this one starts would get it, too,
/// and end with its code for leaks.
void allow_us_before_asan(const std::string& preload, const std::string& ours,
                          const Environment& environment, ProgramEnvironment& result) {
  if (preload != ours) return;
  const char* set = environment("ASAN_OPTIONS");
  const std::string users = set != nullptr ? set : "";
  if (users.find("verify_asan_link_order") != std::string::npos) return;
  if (users.find('\n') != std::string::npos) return;  // it cannot pass through TaskProlog
  result.variables.push_back({"ASAN_OPTIONS", kAsanOption + (users.empty() ? "" : ":" + users)});
}

/// What allow_us_before_asan() has set goes, the user's own behind it stays.
void forbid_us_before_asan(const Environment& environment, ProgramEnvironment& result) {
  const char* set = environment("ASAN_OPTIONS");
  std::string_view users = set != nullptr ? set : "";
  if (users.substr(0, kAsanOption.size()) != kAsanOption) return;
  users.remove_prefix(kAsanOption.size());
  if (users.empty()) {
    result.removed.push_back("ASAN_OPTIONS");
  } else if (users[0] == ':') {
    result.variables.push_back({"ASAN_OPTIONS", std::string(users.substr(1))});
  }
}

/// What the options say, from whichever source: a variable that says something else must not win
/// over the command line just because the command line asks for the default.
void add_setting(const char* name, const std::string& value, bool is_default,
                 const Environment& environment, ProgramEnvironment& result) {
  const char* set = environment(name);
  const bool says_else = set != nullptr && value != set;
  if (!is_default || says_else) result.variables.push_back({name, value});
}

void add_cupti_settings(const Options& options, const Environment& environment,
                        ProgramEnvironment& result) {
  if (!provider_is_wanted(options, "cupti")) return;
  const auto add = [&](const char* name, const std::string& value, bool is_default) {
    add_setting(name, value, is_default, environment, result);
  };
  if (!options.cupti_mode.empty())
    add("AON_CUPTI_MODE", options.cupti_mode, options.cupti_mode == kDefaultCuptiMode);
  if (!options.cupti_graph.empty())
    add("AON_CUPTI_GRAPH", options.cupti_graph, options.cupti_graph == kDefaultCuptiGraph);
  add("AON_CUPTI_CALLS", options.cupti_calls ? "1" : "0", options.cupti_calls);
  if (options.cupti_memory_mib != 0)
    add("AON_CUPTI_MEMORY", std::to_string(options.cupti_memory_mib),
        options.cupti_memory_mib == kDefaultCuptiMemoryMib);
}

void add_settings(const Options& options, const Environment& environment,
                  ProgramEnvironment& result) {
  const auto add = [&](const char* name, const std::string& value, bool is_default) {
    add_setting(name, value, is_default, environment, result);
  };
  if (options.attach_ms != 0)
    add("AON_ATTACH_MS", std::to_string(options.attach_ms),
        options.attach_ms == agent::kAttachTimeoutMs);
  add("AON_BUDGET", fmt::format("{}", options.budget_percent),
      options.budget_percent == kDefaultBudgetPercent);
  if (options.memory_bytes != 0)
    add("AON_MEMORY", std::to_string(options.memory_bytes),
        options.memory_bytes == kDefaultMemoryBytes);
  if (options.disk_bytes != 0)
    add("AON_DISK", std::to_string(options.disk_bytes), options.disk_bytes == kDefaultDiskBytes);
  if (!options.nccl_level.empty() && provider_is_wanted(options, "nccl"))
    add("AON_NCCL_LEVEL", options.nccl_level, options.nccl_level == kDefaultNcclLevel);
  add_cupti_settings(options, environment, result);
}

/// Whether `named` is the plugin `path` by another name: a link, or the plugin of another
/// installation of AON, which is not for this one's runtime. NCCL takes a name without its path and
/// the part of it that is the plugin's own, too (2.28.9, src/plugin/plugin_open.cc).
bool is_own_plugin(const std::string& named, const std::string& path) {
  const std::string file = std::filesystem::path(path).filename();
  if (std::filesystem::path(named).filename() == file) return true;
  std::error_code error;
  if (std::filesystem::equivalent(named, path, error)) return true;
  return named.find('/') == std::string::npos && "libnccl-profiler-" + named + ".so" == file;
}

/// Whether `named` is a beginning of "STATIC_PLUGIN", by which NCCL looks among what the program
/// has already, and that has the plugin `path`.
bool is_preloaded_plugin(std::string_view named, const std::string& path, const char* preload) {
  constexpr std::string_view kStatic = "STATIC_PLUGIN";
  if (named.empty() || preload == nullptr || named.size() > kStatic.size() ||
      strncasecmp(named.data(), kStatic.data(), named.size()) != 0)
    return false;
  return std::string_view(preload).find(std::filesystem::path(path).filename().native()) !=
         std::string_view::npos;
}

/// Kineto, PyTorch's profiler, sets "none" where CUDA shall load no tool.
bool is_unset(std::string_view name, const char* value) {
  return value == nullptr || *value == '\0' ||
         (name == "CUDA_INJECTION64_PATH" && std::string_view(value) == "none");
}

/// A plugin of ours, and how the library finds it.
struct Plugin {
  const char* provider;
  const char* variable;
  const char* file;
};
constexpr Plugin kCuptiPlugin{"cupti", "CUDA_INJECTION64_PATH", kCuptiFile};
constexpr Plugin kNvtxPlugin{"nvtx", "NVTX_INJECTION64_PATH", kNvtxFile};
constexpr Plugin kNcclPlugin{"nccl", "NCCL_PROFILER_PLUGIN", kNcclFile};

/// An outer launch has set it, or the user who wants it in other launches; `path` may be empty.
void remove_plugin(const Plugin& plugin, const std::string& path, const Environment& environment,
                   ProgramEnvironment& result) {
  const char* set = environment(plugin.variable);
  if (set != nullptr && is_own_plugin(set, path.empty() ? plugin.file : path))
    result.removed.push_back(plugin.variable);
}

void add_plugin(const Plugin& plugin, const std::string& path, const Options& options,
                const Environment& environment, ProgramEnvironment& result) {
  const char* name = plugin.variable;
  if (path.empty() || !provider_is_wanted(options, plugin.provider))
    return remove_plugin(plugin, path, environment, result);
  const char* users = environment(name);
  if (users != nullptr && path == users) return;
  if (is_unset(name, users) || is_own_plugin(users, path) ||
      is_preloaded_plugin(users, path, environment("LD_PRELOAD"))) {
    result.variables.push_back({name, path});
  } else {
    result.left_alone.push_back({plugin.provider, name});
  }
}

/// What a site or user has put into NCCL's own files is as good as a variable. One that is set and
/// empty overrules them, for NCCL as well.
void add_nccl_plugin(const std::string& path, const Options& options,
                     const Environment& environment, ProgramEnvironment& result) {
  const char* name = kNcclPlugin.variable;
  const char* users = environment(name);
  if (!path.empty() && provider_is_wanted(options, "nccl") && users == nullptr) {
    const NcclSetting setting = nccl_file_that_sets(name, environment);
    if (!setting.file.empty() && !is_own_plugin(setting.value, path)) {
      result.left_alone.push_back({"nccl", std::string(name) + " in " + setting.file});
      return;
    }
  }
  add_plugin(kNcclPlugin, path, options, environment, result);
}

void add_preload(const Options& options, const Installation& files, const Environment& environment,
                 ProgramEnvironment& result) {
  std::string ours = files.runtime_library;
  if (provider_is_wanted(options, "mpi")) ours += ":" + files.mpi_library;
  const std::string preload = with_preload(environment, ours);
  result.variables.push_back({"LD_PRELOAD", preload});
  allow_us_before_asan(preload, ours, environment, result);
}

void add_plugins(const Options& options, const Installation& files, const Environment& environment,
                 ProgramEnvironment& result) {
  add_plugin(kCuptiPlugin, files.cuda_injection, options, environment, result);
  add_plugin(kNvtxPlugin, files.nvtx_injection, options, environment, result);
  add_nccl_plugin(files.nccl_plugin, options, environment, result);
}

constexpr const char* kOnlyOfItsLaunch[] = {"AON_COUNTERS", "AON_SAMPLING_TIMER", "AON_LEFT_OUT",
                                            agent::kStderrVariable};

/// Which of the ranks' standard errors is the launch's own: only there is the summary printed.
void add_stderr(const Environment& environment, ProgramEnvironment& result) {
  struct stat status {};
  if (!launcher_watches_socket(environment) || fstat(STDERR_FILENO, &status) != 0) return;
  result.variables.push_back(
      {agent::kStderrVariable, fmt::format("{}:{}", status.st_dev, status.st_ino)});
}

void remove_where_set(const char* name, const Environment& environment,
                      ProgramEnvironment& result) {
  const bool is_new = std::none_of(result.variables.begin(), result.variables.end(),
                                   [&](const Variable& one) { return one.name == name; });
  if (is_new && environment(name) != nullptr) result.removed.push_back(name);
}

/// Of the providers that come by a variable, those that are not to record.
std::string left_out(const Options& options) {
  std::string names;
  for (const char* name : {"mpi", "cupti", "nvtx", "nccl"}) {
    if (!provider_is_wanted(options, name)) names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names;
}

}  // namespace

bool provider_is_wanted(const Options& options, const std::string& name) {
  return provider::is_wanted({options.providers, options.without}, name);
}

ProgramEnvironment program_environment(const Options& options, const Installation& files,
                                       const std::string& socket, const std::string& output_dir,
                                       const Environment& environment) {
  ProgramEnvironment result;
  add_preload(options, files, environment, result);
  if (!socket.empty()) result.variables.push_back({"AON_SOCKET", socket});
  result.variables.push_back({"AON_OUTPUT", output_dir});
  result.variables.push_back({"AON_OUTPUT_GAVE", output_dir});  // another value is the user's
  add_settings(options, environment, result);
  const std::string counters = border_events(options.events);
  if (!counters.empty()) result.variables.push_back({"AON_COUNTERS", counters});
  if (options.sampling_fallback == "timer" && options.sampling_hz != 0 &&
      provider_is_wanted(options, "sampling")) {
    result.variables.push_back({"AON_SAMPLING_TIMER", std::to_string(options.sampling_hz)});
  }
  if (!options.record_fixture.empty())
    result.variables.push_back({"AON_RECORD_FIXTURE", options.record_fixture});
  const std::string names = left_out(options);
  if (!names.empty()) result.variables.push_back({"AON_LEFT_OUT", names});
  add_plugins(options, files, environment, result);
  add_stderr(environment, result);
  for (const char* name : kOnlyOfItsLaunch) remove_where_set(name, environment, result);
  return result;
}

ProgramEnvironment without_outer_launch(const Environment& environment) {
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string(text != nullptr ? text : "");
  };
  ProgramEnvironment result;
  if (value("AON_DOOR").empty()) return result;
  std::vector<std::string> preloaded = items_of(value("LD_PRELOAD"), ": ");
  if (std::erase_if(preloaded, is_own_library) != 0) {
    forbid_us_before_asan(environment, result);
    if (!preloaded.empty())
      result.variables.push_back({"LD_PRELOAD", fmt::format("{}", fmt::join(preloaded, ":"))});
  }
  if (preloaded.empty()) remove_where_set("LD_PRELOAD", environment, result);
  const std::string output = value("AON_OUTPUT");
  if (output == value("AON_OUTPUT_GAVE") || output == value("AON_DOOR_GAVE")) {
    const std::string users = value("AON_DOOR_OUTPUT");
    if (!users.empty()) result.variables.push_back({"AON_OUTPUT", users});
    remove_where_set("AON_OUTPUT", environment, result);
  }
  for (const char* name :
       {"AON_SOCKET", "AON_DOOR", "AON_DOOR_GAVE", "AON_DOOR_OUTPUT", "AON_OUTPUT_GAVE"})
    remove_where_set(name, environment, result);
  for (const char* name : kOnlyOfItsLaunch) remove_where_set(name, environment, result);
  for (const Plugin& plugin : {kCuptiPlugin, kNvtxPlugin, kNcclPlugin})
    remove_plugin(plugin, "", environment, result);
  return result;
}

std::vector<Variable> lost_variables(const Installation& files, const Environment& environment) {
  const char* names = environment("AON_LEFT_OUT");
  Options options;
  options.without = items_of(names != nullptr ? names : "", ",");
  const char* preload = environment("LD_PRELOAD");
  const std::vector<std::string> preloaded = items_of(preload != nullptr ? preload : "", ": ");
  const auto is_runtime = [&](const std::filesystem::path& path) {
    return path.filename() == std::filesystem::path(files.runtime_library).filename();
  };
  ProgramEnvironment result;
  const auto runtime = std::find_if(preloaded.begin(), preloaded.end(), is_runtime);
  if (runtime == preloaded.end()) {
    add_preload(options, files, environment, result);
  } else if (*runtime != files.runtime_library) {
    return {};  // another installation is as good, and its runtime is not one for our plugins
  }
  add_plugins(options, files, environment, result);
  return result.variables;
}

}  // namespace aon::launcher
