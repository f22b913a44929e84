#include "core/topology/topology.h"

#include <hwloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/topology/flatten.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace aon::topology {
namespace {

/// Parts of hwloc that would start a GPU runtime or talk to a display.
constexpr const char* kUnwantedComponents[] = {"cuda", "opencl", "gl", "levelzero"};

constexpr const char* kXmlVariable = "HWLOC_XMLFILE";

Result<hwloc_topology*> make() {
  hwloc_topology* topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return Error{Code::kUnavailable, "hwloc cannot start; is libhwloc complete?"};
  }
  for (const char* component : kUnwantedComponents) {
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  return topology;
}

/// libpciaccess, below hwloc's plugin, keeps 1 KiB per load; not our leak to report.
int load_topology(hwloc_topology* topology) {
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler not_ours;
#endif
  return hwloc_topology_load(topology);
}

/// In a process of its own: hwloc may crash on a document that is damaged.
bool is_loadable(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const Result<hwloc_topology*> made = make();
    const bool is_read = made && hwloc_topology_set_xml(*made, path.c_str()) == 0;
    // Where the file cannot be read, hwloc loads the machine itself and says nothing.
    _exit(is_read && load_topology(*made) == 0 ? 0 : 1);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Status discover(hwloc_topology* topology, Code code, const char* what) {
  if (load_topology(topology) == 0) return {};
  const int error_number = errno;
  hwloc_topology_destroy(topology);
  return Error{code, std::string(what) + ": hwloc: " + strerror(error_number)};
}

}  // namespace

const char* type_name(ObjectType type) {
  switch (type) {
    case ObjectType::kMachine:
      return "machine";
    case ObjectType::kPackage:
      return "package";
    case ObjectType::kNumaNode:
      return "numa";
    case ObjectType::kCache:
      return "cache";
    case ObjectType::kCore:
      return "core";
    case ObjectType::kPu:
      return "pu";
    case ObjectType::kGpu:
      return "gpu";
    case ObjectType::kNic:
      return "nic";
  }
  return "unknown";
}

Result<Topology> Topology::load() {
  Result<hwloc_topology*> made = make();
  if (!made) return made.error();
  const Status loaded =
      discover(*made, Code::kUnavailable, "topology of this machine (see HWLOC_XMLFILE)");
  if (!loaded) return loaded.error();
  return Topology(*made);
}

Result<Topology> Topology::from_xml(const std::string& xml) {
  Result<hwloc_topology*> made = make();
  if (!made) return made.error();
  if (hwloc_topology_set_xmlbuffer(*made, xml.c_str(), static_cast<int>(xml.size()) + 1) != 0) {
    hwloc_topology_destroy(*made);
    return Error{Code::kDamaged, "topology XML is not hwloc's, or newer than this hwloc"};
  }
  const Status loaded = discover(*made, Code::kDamaged, "topology XML");
  if (!loaded) return loaded.error();
  return Topology(*made);
}

Topology::~Topology() {
  if (topology_ != nullptr) hwloc_topology_destroy(topology_);
}

Topology::Topology(Topology&& other) noexcept
    : topology_(std::exchange(other.topology_, nullptr)) {}

Topology& Topology::operator=(Topology&& other) noexcept {
  std::swap(topology_, other.topology_);
  return *this;
}

Result<std::string> Topology::xml() const {
  char* buffer = nullptr;
  int size_bytes = 0;
  if (hwloc_topology_export_xmlbuffer(topology_, &buffer, &size_bytes, 0) != 0) {
    return Error{Code::kBug, std::string("hwloc cannot export XML: ") + strerror(errno)};
  }
  std::string text(buffer);
  hwloc_free_xmlbuffer(topology_, buffer);
  return text;
}

std::vector<Object> Topology::objects() const { return flatten(topology_); }

bool Topology::is_this_system() const { return hwloc_topology_is_thissystem(topology_) != 0; }

Status settle_xml_file() {
  const char* variable = getenv(kXmlVariable);
  if (variable == nullptr || *variable == '\0') return {};
  const std::string name = variable;
  std::error_code error;
  const std::string path = std::filesystem::absolute(name, error).string();
  if (!error && is_loadable(path)) {
    setenv(kXmlVariable, path.c_str(), 1);
    return {};
  }
  unsetenv(kXmlVariable);
  return Error{Code::kDamaged, std::string(kXmlVariable) + "=" + name +
                                   " is not hwloc's XML or cannot be read; the topology is that of "
                                   "the machine itself"};
}

Result<std::string> binding_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  const std::string key = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return line.substr(key.size());
  }
  return Error{Code::kNotFound, "process " + std::to_string(pid) + " has no binding: it has ended"};
}

}  // namespace aon::topology
