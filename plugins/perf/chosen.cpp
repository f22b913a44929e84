#include "perf/chosen.h"

#include <algorithm>
#include <cstdlib>

#include "perf/counters.h"

namespace aon::perf {
namespace {

constexpr size_t kFieldCount = 5;
constexpr uint64_t kExcludeUser = 1;
constexpr uint64_t kExcludeKernel = 2;

bool is_same(const EventType& a, const EventType& b) {
  return a.type == b.type && a.config == b.config && a.config1 == b.config1 &&
         a.config2 == b.config2 && a.user_only == b.user_only && a.kernel_only == b.kernel_only;
}

/// Whether a program may read `type` without a syscall where it is counted.
bool is_readable(const Kernel& kernel, const EventType& type) {
  const Probe how = probe(kernel, type);
  if (!how.available || kernel.map_ring == nullptr) return false;
  perf_event_attr attr = attributes(type, how);
  attr.inherit = 0;  // such an event has no page
  attr.inherit_thread = 0;
  const int fd = kernel.open_event(attr, 0, kNoGroup);
  if (fd < 0) return false;
  void* page = kernel.map_ring(fd, 0);
  const bool readable =
      page != nullptr && static_cast<const perf_event_mmap_page*>(page)->cap_user_rdpmc != 0;
  if (page != nullptr) kernel.unmap_ring(page, 0);
  kernel.close_event(fd);
  return readable;
}

}  // namespace

ChosenEvents::ChosenEvents(const std::string& text) : is_default_(text.empty()) {
  for (const EventType& type : event_types()) {
    if (is_default_ || !is_hardware(type)) types_.push_back(type);
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    add(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void ChosenEvents::add(const std::string& item) {
  uint64_t field[kFieldCount];
  const char* at = item.c_str();
  for (uint64_t& number : field) {
    char* end = nullptr;
    number = std::strtoull(at, &end, 0);
    if (end == at || *end != '/') return note_unknown(item);
    at = end + 1;
  }
  if (*at == '\0') return note_unknown(item);
  const char* name = names_.emplace_back(at).c_str();
  EventType type{name, "1", "chosen by --events", static_cast<uint32_t>(field[0]), field[1], false};
  type.config1 = field[2];
  type.config2 = field[3];
  type.user_only = (field[4] & kExcludeKernel) != 0;
  type.kernel_only = (field[4] & kExcludeUser) != 0;
  for (const auto types : {event_types(), event_types_on_request()}) {
    for (const EventType& known : types) {
      if (known.type != type.type || known.config != type.config) continue;
      type.unit = known.unit;
      type.description = known.description;
      type.in_kernel = known.in_kernel;
    }
  }
  const auto same = std::find_if(types_.begin(), types_.end(),
                                 [&](const EventType& t) { return is_same(t, type); });
  if (same == types_.end()) types_.push_back(type);
}

void ChosenEvents::note_unknown(const std::string& item) {
  constexpr size_t kMaxText = 200;
  if (item.empty() || unknown_.size() > kMaxText) return;
  unknown_ += (unknown_.empty() ? "" : ", ") + item.substr(0, kMaxText);
  if (unknown_.size() > kMaxText) unknown_ += " and more";
}

std::string ChosenEvents::leave_to_threads(const Kernel& kernel) {
  std::string names;
  if (is_default_) return names;
  size_t taken = 0;
  const auto first = std::find_if(types_.begin(), types_.end(), is_hardware);
  if (first == types_.end() || !is_readable(kernel, *first)) return names;
  std::erase_if(types_, [&](const EventType& type) {
    if (!is_hardware(type) || taken == kMaxBorderEvents) return false;
    ++taken;
    names += (names.empty() ? "" : ", ") + std::string(type.name);
    return true;
  });
  return names;
}

}  // namespace aon::perf
