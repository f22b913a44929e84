#include "core/agent/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/file.h"

namespace aon::agent {
namespace {

/// The group in a line of /proc/PID/cgroup, "5:cpu,memory:/PATH", that has `controller`; v2's line
/// is "0::/PATH".
std::optional<std::string> group_in(const std::string& text, std::string_view controller) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (names.find("," + std::string(controller) + ",") == names.npos) continue;
    return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

/// The smallest number in `file` of the group at `path` and those above it. A word ("max") is none.
uint64_t least_of(uint64_t limit, const std::string& mount, std::string path, const char* file,
                  const ReadText& read) {
  for (;; path.resize(path.rfind('/'))) {
    const auto text = read(mount + path + "/" + file);
    char* end = nullptr;
    const uint64_t bytes = text ? std::strtoull(text->c_str(), &end, 10) : 0;
    if (text && end != text->c_str()) limit = std::min(limit, bytes);
    if (path.rfind('/') == std::string::npos) return limit;
  }
}

}  // namespace

uint64_t memory_limit_bytes(uint64_t machine_bytes, const ReadText& read) {
  uint64_t limit = machine_bytes;
  const auto groups = read("/proc/self/cgroup");
  if (!groups) return limit;
  if (const auto path = group_in(*groups, ""))
    limit = least_of(limit, "/sys/fs/cgroup", *path, "memory.max", read);
  if (const auto path = group_in(*groups, "memory"))
    limit = least_of(limit, "/sys/fs/cgroup/memory", *path, "memory.limit_in_bytes", read);
  return limit;
}

uint64_t memory_limit_bytes() {
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return memory_limit_bytes(pages * page_bytes,
                            [](const std::string& path) -> std::optional<std::string> {
                              auto text = read_text_file(path);
                              if (!text) return std::nullopt;
                              return std::move(*text);
                            });
}

}  // namespace aon::agent
