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

constexpr std::string_view kFilePrefix = "libaon-provider-";
constexpr std::string_view kFileSuffix = ".so";
constexpr std::string_view kSubfolder = "/aon/providers";
constexpr const char* kExample = "example";  ///< only on request

/// A provider that this version knows, and the library that it is, where it is none of the
/// provider folder.
struct KnownName {
  const char* name;
  const char* library;
};
constexpr std::array<KnownName, 13> kKnownNames{{{"mpi", "libaon-mpi.so"},
                                                 {"perf", nullptr},
                                                 {"energy", nullptr},
                                                 {"membw", nullptr},
                                                 {"network", nullptr},
                                                 {"node", nullptr},
                                                 {"process", nullptr},
                                                 {kExample, nullptr},
                                                 {"nvml", nullptr},
                                                 {"gpu-counters", nullptr},
                                                 {"cupti", "libaon-cupti.so"},
                                                 {"nvtx", "libaon-nvtx.so"},
                                                 {"nccl", "libnccl-profiler-aon.so"}}};

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_known(const std::string& name) {
  return std::any_of(kKnownNames.begin(), kKnownNames.end(),
                     [&](const KnownName& known) { return name == known.name; });
}

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

std::optional<Exclusion> exclusion(const Selection& selection, const std::string& name) {
  if (contains(selection.without, name))
    return Exclusion{"excluded by --without", "leave " + name + " out of --without"};
  if (is_wanted(selection, name) || name == kExample) return std::nullopt;
  return Exclusion{"not in --providers", "add " + name + " to --providers"};
}

Status check_names(const Selection& selection, const std::vector<std::string>& installed) {
  if (Status status = check_list("--providers", selection.providers, installed, Missing::kIsError);
      !status)
    return status;
  // A site's settings may leave out what some of its machines do not have.
  return check_list("--without", selection.without, installed, Missing::kIsFine);
}

}  // namespace aon::provider
