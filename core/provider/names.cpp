#include "core/provider/names.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace aon::provider {
namespace {

constexpr char kLeftAloneReason[] = " was set by the user and is left alone";
constexpr std::string_view kFilePrefix = "libaon-provider-";
constexpr std::string_view kFileSuffix = ".so";
constexpr std::string_view kSubfolder = "/aon/providers";
constexpr const char* kExample = "example";  ///< only on request

/// A provider that this version knows, and the library that it is, where it is none of the
/// provider folder.
struct KnownName {
  const char* name;
  const char* library = nullptr;
  bool reads_node_alone = false;  ///< else it reads processes, their control group or their GPUs
};
constexpr std::array<KnownName, 14> kKnownNames{{{"mpi", "libaon-mpi.so"},
                                                 {"perf"},
                                                 {"sampling"},
                                                 {"energy", nullptr, true},
                                                 {"membw", nullptr, true},
                                                 {"network", nullptr, true},
                                                 {"node"},
                                                 {"process"},
                                                 {kExample},
                                                 {"nvml"},
                                                 {"gpu-counters"},
                                                 {"cupti", "libaon-cupti.so"},
                                                 {"nvtx", "libaon-nvtx.so"},
                                                 {"nccl", "libnccl-profiler-aon.so"}}};

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

const KnownName* find_known(const std::string& name) {
  const auto* found = std::find_if(kKnownNames.begin(), kKnownNames.end(),
                                   [&](const KnownName& known) { return name == known.name; });
  return found == kKnownNames.end() ? nullptr : found;
}

bool is_known(const std::string& name) { return find_known(name) != nullptr; }

bool is_folder(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

void add_files(const std::string& folder, std::vector<std::string>* names) {
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    std::string_view file = entry->d_name;
    if (!file.starts_with(kFilePrefix) || !file.ends_with(kFileSuffix)) continue;
    file.remove_prefix(kFilePrefix.size());
    file.remove_suffix(std::min(file.size(), kFileSuffix.size()));
    if (!file.empty()) names->emplace_back(file);
  }
  closedir(entries);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

enum class Missing { kIsError, kIsFine };

Status check_list(const char* option, const std::vector<std::string>& list,
                  const std::vector<std::string>& installed, Missing missing) {
  for (const std::string& name : list) {
    if (name.starts_with('/')) {
      if (access(name.c_str(), R_OK) == 0) continue;
      return Error{Code::kInvalid,
                   std::string(option) + ": cannot read " + name + ": " + strerror(errno)};
    }
    if (contains(installed, name)) continue;
    if (missing == Missing::kIsFine && is_known(name)) continue;
    const char* what =
        is_known(name) ? "' is not installed here" : "' is not the name of a provider";
    return Error{Code::kInvalid, std::string(option) + ": '" + name + what +
                                     "; installed are: " + listed(installed)};
  }
  return {};
}

}  // namespace

std::string provider_folder(const std::string& library_folder) {
  const std::string own = library_folder + std::string(kSubfolder);
  return is_folder(own) ? own : library_folder;
}

std::string library_folder(const std::string& provider_folder) {
  return provider_folder.ends_with(kSubfolder)
             ? provider_folder.substr(0, provider_folder.size() - kSubfolder.size())
             : provider_folder;
}

std::vector<std::string> installed_names(const std::string& library_folder,
                                         const std::string& provider_folder) {
  std::vector<std::string> names;
  add_files(provider_folder, &names);
  for (const KnownName& known : kKnownNames) {
    if (known.library == nullptr || contains(names, known.name)) continue;
    if (access((library_folder + "/" + known.library).c_str(), R_OK) == 0)
      names.emplace_back(known.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_wanted(const Selection& selection, const std::string& name) {
  if (contains(selection.without, name)) return false;
  return selection.providers.empty() ? name != kExample : contains(selection.providers, name);
}

Exclusion left_alone(const LeftAlone& one) {
  const size_t name_end = one.variable.find(" in ");  // of a file
  const std::string name = one.variable.substr(0, name_end);
  return {one.variable + kLeftAloneReason, name_end == std::string::npos
                                               ? "unset " + name
                                               : "set " + name + " to nothing in the environment"};
}

bool is_left_alone(const std::string& reason) { return reason.ends_with(kLeftAloneReason); }

std::optional<Exclusion> exclusion(const Selection& selection, const std::string& name) {
  if (contains(selection.without, name))
    return Exclusion{kExcludedReason, "leave " + name + " out of --without"};
  if (is_wanted(selection, name) || name == kExample) return std::nullopt;
  return Exclusion{kNotChosenReason, "add " + name + " to --providers"};
}

Status check_names(const Selection& selection, const std::vector<std::string>& installed) {
  if (Status status = check_list("--providers", selection.providers, installed, Missing::kIsError);
      !status)
    return status;
  // A site's settings may leave out what some of its machines do not have.
  return check_list("--without", selection.without, installed, Missing::kIsFine);
}

Status check_node_names(const std::vector<std::string>& names, const std::string& provider_folder) {
  std::vector<std::string> installed;
  add_files(provider_folder, &installed);
  std::erase_if(installed, [](const std::string& name) {
    const KnownName* known = find_known(name);
    return known != nullptr && !known->reads_node_alone;  // a site's own may
  });
  std::sort(installed.begin(), installed.end());
  for (const std::string& name : names) {
    const KnownName* known = find_known(name);
    if (contains(installed, name)) continue;
    const char* what = known == nullptr          ? "is not the name of a provider"
                       : known->reads_node_alone ? "is not installed here"
                                                 : "does not read the node alone";
    return Error{Code::kInvalid,
                 "--providers: '" + name + "' " + what + "; those that do: " + listed(installed)};
  }
  return {};
}

}  // namespace aon::provider
