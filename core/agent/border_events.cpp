#include "core/agent/border_events.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace aon::agent {
namespace {

constexpr size_t kFieldCount = 5;

int try_event(perf_event_attr attr, const runtime::CounterSource& source) {
  const int fd = source.open(&attr, -1);
  if (fd < 0) return -fd;
  const perf_event_mmap_page* page = source.map(fd);
  int error_number = page != nullptr ? 0 : errno == EPERM ? runtime::kNoLockedMemory : errno;
  if (page != nullptr && !page->cap_user_rdpmc) error_number = runtime::kNotAllowed;
  if (page != nullptr) source.unmap(page);
  source.close(fd);
  return error_number;
}

}  // namespace

std::string first_border_event(const std::vector<std::string>& events) {
  static const std::string kSoftware = std::to_string(PERF_TYPE_SOFTWARE) + "/";
  const auto found = std::find_if(events.begin(), events.end(), [](const std::string& event) {
    return event.find('/') != std::string::npos && !event.starts_with(kSoftware);
  });
  return found != events.end() ? *found : std::string();
}

int try_border_event(const std::string& event, const runtime::CounterSource& source) {
  uint64_t field[kFieldCount] = {};
  const char* at = event.c_str();
  for (uint64_t& number : field) {
    char* end = nullptr;
    number = std::strtoull(at, &end, 0);
    at = *end == '/' ? end + 1 : end;
  }
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = static_cast<uint32_t>(field[0]);
  attr.config = field[1];
  attr.config1 = field[2];
  attr.config2 = field[3];
  attr.exclude_user = (field[4] & runtime::kExcludeUser) != 0;
  attr.exclude_kernel = (field[4] & runtime::kExcludeKernel) != 0;
  attr.exclude_hv = 1;
  const int error_number = try_event(attr, source);
  if (error_number != EACCES && error_number != EPERM) return error_number;
  attr.exclude_kernel = 1;  // as they do where the kernel may not be counted
  return try_event(attr, source);
}

}  // namespace aon::agent
