#include "core/topology/machine.h"

#include <fcntl.h>
#include <hwloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/name_hash.h"
#include "core/topology/topology.h"

namespace aon::topology {
namespace {

constexpr size_t kMaxBytes = 64u << 20;
/// Control groups, or containers, that differ and share a folder have a file each, so few that
/// nobody has to clean up.
constexpr const char* kFilePrefix = "topology-";

constexpr const char* kKeyFiles[] = {"/proc/sys/kernel/random/boot_id",
                                     "/sys/devices/system/cpu/online",
                                     "/sys/devices/system/node/online"};
constexpr const char* kKeyFolders[] = {"/sys/bus/pci/devices",       "/sys/class/net",
                                       "/sys/class/infiniband",      "/sys/class/drm",
                                       "/proc/driver/nvidia/gpus",   "/sys/bus/pci/drivers/nvidia",
                                       "/sys/bus/pci/drivers/amdgpu"};

bool has_hwloc_variable() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "HWLOC_", 6) == 0) return true;
  }
  return false;
}

std::string names_in(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    names.push_back(at->path().filename());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

/// The line of /proc/self/status that begins with `key`.
std::string status_line(std::string_view key) {
  const auto status = read_text_file("/proc/self/status");
  const size_t at = status ? status->find("\n" + std::string(key)) : std::string::npos;
  if (at == std::string::npos) return "";
  return status->substr(at + 1, status->find('\n', at + 1) - at);
}

/// The first line tells for what the rest is good, and that it is whole.
std::string first_line(const std::string& key, std::string_view xml) {
  return "aon topology 1 " + name_hash(key) + " " + name_hash(xml) + "\n";
}

std::optional<std::string> read_kept(const std::string& path, const std::string& key) {
  const auto file = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status {};
  if (!file || ::fstat(file->get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      status.st_size > static_cast<off_t>(kMaxBytes))
    return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const auto got = read_at(file->get(), text.data(), text.size(), 0);
  const size_t line_bytes = first_line(key, "").size();
  if (!got || *got != text.size() || text.size() <= line_bytes) return std::nullopt;
  std::string xml = text.substr(line_bytes);
  if (text.compare(0, line_bytes, first_line(key, xml)) != 0) return std::nullopt;
  return xml;
}

/// Whole or not at all. What cannot be kept is found out again.
void keep(const std::string& path, const std::string& key, const std::string& xml) {
  const std::string text = first_line(key, xml) + xml;
  const std::string part = path + "." + std::to_string(::getpid());
  ::unlink(part.c_str());  // of one that was killed
  const auto file = open_file(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!file) return;
  if (!write_all(file->get(), text.data(), text.size()) ||
      std::rename(part.c_str(), path.c_str()) != 0)
    ::unlink(part.c_str());
}

/// hwloc tells of its own process, too.
void drop_control_group(std::string* xml) {
  const size_t at = xml->find("<info name=\"LinuxCgroup\"");
  if (at == std::string::npos) return;
  const size_t begin = xml->rfind('\n', at) + 1;
  const size_t end = xml->find('\n', at);
  if (end != std::string::npos) xml->erase(begin, end + 1 - begin);
}

Result<std::string> discover() {
  const auto topology = Topology::load();
  if (!topology) return topology.error();
  Result<std::string> xml = topology->xml();
  if (xml) drop_control_group(&*xml);
  return xml;
}

}  // namespace

std::string machine_key(const std::string& cpus) {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  std::string key = std::string(host) + "\n" + std::to_string(hwloc_get_api_version()) + "\n" +
                    cpus + "\n" + status_line("Mems_allowed_list:");
  for (const char* file : kKeyFiles) {
    const auto text = read_text_file(file);
    key += text ? *text : "-\n";
  }
  for (const char* folder : kKeyFolders) key += names_in(folder) + "\n";
  return key;
}

Result<std::string> kept_xml(const std::string& folder, const std::string& key,
                             const std::function<Result<std::string>()>& discover) {
  const std::string path = folder + "/" + kFilePrefix + name_hash(key).back();
  if (auto kept = read_kept(path, key)) return std::move(*kept);
  Result<std::string> xml = discover();
  if (xml) keep(path, key, *xml);
  return xml;
}

Result<std::string> machine_xml(const std::string& folder, const std::string& cpus) {
  if (folder.empty() || has_hwloc_variable()) return discover();
  return kept_xml(folder, machine_key(cpus), discover);
}

}  // namespace aon::topology
