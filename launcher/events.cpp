#include "launcher/events.h"

#include <fmt/format.h>
#include <perfmon/pfmlib_perf_event.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <set>

namespace aon::launcher {
namespace {

constexpr size_t kNearCount = 4;
constexpr uint32_t kExcludeUser = 1;
constexpr uint32_t kExcludeKernel = 2;
constexpr uint32_t kExcludeHypervisor = 4;

/// Software events of perf(1) that libpfm4 does not know.
struct SoftwareEvent {
  std::string_view name;
  uint64_t config;
};
constexpr SoftwareEvent kMoreSoftware[] = {{"alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS},
                                           {"emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS}};

/// Names of the kernel's own events as perf(1) writes them; libpfm4 takes them in this form too.
std::string spelled_like_perf(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
  return name;
}

std::string folded(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::tolower(c));
  return text;
}

/// All events of the PMUs that this machine has.
std::vector<std::string> known_names() {
  std::set<std::string> names;
  pfm_pmu_info_t pmu{};
  pmu.size = sizeof(pmu);
  pfm_event_info_t event{};
  event.size = sizeof(event);
  for (int p = PFM_PMU_NONE; p < PFM_PMU_MAX; ++p) {
    const auto id = static_cast<pfm_pmu_t>(p);
    if (pfm_get_pmu_info(id, &pmu) != PFM_SUCCESS || pmu.is_present == 0) continue;
    for (int i = pmu.first_event; i != -1; i = pfm_get_event_next(i)) {
      if (pfm_get_event_info(i, PFM_OS_PERF_EVENT, &event) != PFM_SUCCESS) continue;
      const std::string_view name = event.name;
      const bool is_macro = name.starts_with("PERF_COUNT_");
      if (id == PFM_PMU_PERF_EVENT && is_macro) continue;
      names.insert(id == PFM_PMU_PERF_EVENT ? spelled_like_perf(event.name)
                                            : folded(pmu.name) + "::" + folded(event.name));
    }
  }
  for (const SoftwareEvent& more : kMoreSoftware) names.emplace(more.name);
  return {names.begin(), names.end()};
}

/// The letters behind the last single colon, where they are modifiers of perf(1); else "".
std::string_view perf_modifiers(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || name[colon - 1] == ':') return {};
  const std::string_view letters = name.substr(colon + 1);
  return letters.find_first_not_of("ukhIGHpPSDWeb") == std::string_view::npos ? letters
                                                                              : std::string_view();
}

/// "cycles:uk" as libpfm4 has it: "cycles:u:k". Other names stay.
std::string with_single_modifiers(const std::string& name) {
  const std::string_view letters = perf_modifiers(name);
  if (letters.size() < 2 || letters.find_first_not_of("uk") != std::string_view::npos) return name;
  std::string text = name.substr(0, name.size() - letters.size() - 1);
  for (const char mode : {'u', 'k'}) {
    if (letters.find(mode) != std::string_view::npos) text += std::string(":") + mode;
  }
  return text;
}

/// One of kMoreSoftware, with :u and :k.
bool encode_software(std::string_view name, perf_event_attr* attr) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string own = folded(name.substr(0, colon));
  const std::string_view modes = name.substr(colon);
  const auto* found = std::find_if(std::begin(kMoreSoftware), std::end(kMoreSoftware),
                                   [&](const SoftwareEvent& e) { return folded(e.name) == own; });
  const bool is_known = modes.empty() || modes == ":u" || modes == ":k" || modes == ":u:k";
  if (found == std::end(kMoreSoftware) || !is_known) return false;
  *attr = {};
  attr->type = PERF_TYPE_SOFTWARE;
  attr->config = found->config;
  attr->exclude_kernel = modes == ":u" ? 1 : 0;
  attr->exclude_user = modes == ":k" ? 1 : 0;
  return true;
}

Error unknown_event(const std::string& name, int code) {
  const std::vector<std::string> names = known_names();
  if (code != PFM_ERR_NOTFOUND && code != PFM_ERR_ATTR && code != PFM_ERR_UMASK)
    return {Code::kInvalid, fmt::format("--events: '{}': {}", name, pfm_strerror(code))};
  const std::string_view letters = perf_modifiers(name);
  perf_event_attr ignored;
  const bool is_known =
      code != PFM_ERR_NOTFOUND || encode_software(name.substr(0, name.rfind(':')), &ignored);
  if (!letters.empty() && is_known)
    return {Code::kInvalid,
            fmt::format("--events: '{}': a count takes the modifiers :u (user mode), :k (kernel) "
                        "and :uk; precise ones (:p) are of samples, :G and :H of virtual machines",
                        name)};
  const char* problem = code == PFM_ERR_NOTFOUND ? "is no event of this machine"
                                                 : "names an attribute that its event has not";
  return {Code::kInvalid, fmt::format("--events: '{}' {}; near it: {}", name, problem,
                                      fmt::join(nearest_names(name, names, kNearCount), ", "))};
}

Result<std::string> encode(const std::string& name) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  pfm_perf_encode_arg_t arg{};
  arg.size = sizeof(arg);
  arg.attr = &attr;
  const std::string spelled = with_single_modifiers(name);
  const int code =
      pfm_get_os_event_encoding(spelled.c_str(), PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
  if (code != PFM_SUCCESS && !encode_software(spelled, &attr)) return unknown_event(name, code);
  if (name.find_first_of(",/\n") != std::string::npos)
    return Error{Code::kInvalid, fmt::format("--events: '{}' is no name of an event", name)};
  if (attr.exclude_user != 0 && attr.exclude_kernel != 0)
    return Error{
        Code::kInvalid,
        fmt::format("--events: '{}' counts neither user mode (:u) nor the kernel (:k)", name)};
  // libpfm4 excludes the hypervisor only where it knows that the CPU can tell it apart.
  const uint32_t exclude = (attr.exclude_user != 0 ? kExcludeUser : 0) |
                           (attr.exclude_kernel != 0 ? kExcludeKernel : 0) | kExcludeHypervisor;
  return fmt::format("{}/{:#x}/{:#x}/{:#x}/{}/{}", static_cast<uint32_t>(attr.type),
                     static_cast<uint64_t>(attr.config), static_cast<uint64_t>(attr.config1),
                     static_cast<uint64_t>(attr.config2), exclude, name);
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates, size_t count) {
  const std::string wanted = folded(name);
  std::vector<std::pair<size_t, const std::string*>> ranked;
  for (const std::string& candidate : candidates) {
    const std::string full = folded(candidate);
    const size_t colons = full.find("::");
    const std::string_view own = colons == std::string::npos
                                     ? std::string_view(full)
                                     : std::string_view(full).substr(colons + 2);
    const bool has_it = wanted.size() >= 3 && own.find(wanted) != std::string_view::npos;
    const size_t distance = std::min(edit_distance(wanted, full), edit_distance(wanted, own));
    ranked.emplace_back(has_it ? std::min<size_t>(distance, 2) : distance, &candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(count, ranked.size()); ++i) nearest.push_back(*ranked[i].second);
  return nearest;
}

Result<std::vector<std::string>> resolve_events(const std::vector<std::string>& names) {
  std::vector<std::string> encoded;
  if (names.empty()) return encoded;
  if (const int code = pfm_initialize(); code != PFM_SUCCESS)
    return Error{Code::kInvalid, fmt::format("--events: libpfm4: {}", pfm_strerror(code))};
  for (const std::string& name : names) {
    Result<std::string> event = encode(name);
    if (!event) return event.error();
    if (std::find(encoded.begin(), encoded.end(), *event) == encoded.end())
      encoded.push_back(std::move(*event));
  }
  return encoded;
}

std::string border_events(const std::vector<std::string>& encoded) {
  static const std::string kSoftware = std::to_string(PERF_TYPE_SOFTWARE) + "/";
  std::vector<std::string> chosen;
  for (const std::string& event : encoded) {
    const bool is_encoded = event.find('/') != std::string::npos;
    if (chosen.size() < kMaxBorderEvents && is_encoded && !event.starts_with(kSoftware))
      chosen.push_back(event);
  }
  return fmt::format("{}", fmt::join(chosen, ","));
}

}  // namespace aon::launcher
