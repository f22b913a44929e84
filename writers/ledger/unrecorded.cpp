#include "writers/ledger/unrecorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers::ledger {
namespace {

struct Words {
  const char* why;
  const char* remedy;
};

Words words_of(GapCause cause) {
  switch (cause) {
    case GapCause::kBudget:
      return {"above --budget", "a larger --budget"};
    case GapCause::kPause:
      return {"paused by the program", ""};
    case GapCause::kDropped:
      return {"dropped by CUPTI", "less work under way at a time"};
    case GapCause::kPoolFull:
      return {"without a buffer for CUPTI", "a larger --cupti-memory"};
    case GapCause::kUnusable:
      return {"of records without times or damaged", "see the provider cupti in aon.json"};
    case GapCause::kKept:
      return {"not handed over by CUPTI", "the CUPTI of another CUDA version"};
    case GapCause::kUnread:
      return {"not read when the program ended", "a processor with time for AON's thread"};
    case GapCause::kStopped:
      return {"behind an error of CUPTI", "the driver's log"};
    case GapCause::kRing:
      return {"lost in the ring", "a larger --memory"};
    case GapCause::kLeftOut:
      return {"without room in the files", "a larger --disk"};
    case GapCause::kUnknown:
      break;
  }
  return {"for other causes", ""};
}

/// Fewer are at the begins and ends of what is recorded: no loss to be told first.
constexpr double kLeastLaunchShare = 0.01;

double seconds_of(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// Of all processes. Each device of a process has the same count.
uint64_t missing_launches(const DeviceSummary& devices) {
  std::map<uint32_t, uint64_t> by_group;
  for (const DeviceUse& use : devices.uses) by_group[use.group] = use.missing_launch_count;
  uint64_t sum = 0;
  for (const auto& [group, count] : by_group) sum += count;
  return sum;
}

uint64_t kernels(const DeviceSummary& devices) {
  uint64_t sum = 0;
  for (const DeviceUse& use : devices.uses) sum += use.kernel_count;
  return sum;
}

}  // namespace

UnrecordedText unrecorded_text(const Model& model, const DeviceSummary& devices) {
  uint64_t by_cause[kGapCauseCount] = {};
  std::map<uint32_t, uint64_t> by_group;
  UnrecordedText result;
  for (const UnrecordedTime& row : devices.unrecorded) {
    by_cause[static_cast<size_t>(row.cause)] += row.total_ns;
    by_group[row.group] = row.process_ns;
    result.is_loss |= row.cause != GapCause::kBudget && row.cause != GapCause::kPause;
  }
  for (const auto& [group, total_ns] : by_group) result.total_s += seconds_of(total_ns);
  std::string causes;
  while (const uint64_t most_ns = *std::max_element(std::begin(by_cause), std::end(by_cause))) {
    auto* most = std::max_element(std::begin(by_cause), std::end(by_cause));
    const Words words = words_of(static_cast<GapCause>(most - std::begin(by_cause)));
    causes += fmt::format("{}{} {}", causes.empty() ? "" : ", ", seconds_text(seconds_of(most_ns)),
                          words.why);
    if (*words.remedy != '\0') causes += fmt::format(" ({})", words.remedy);
    *most = 0;
  }
  const auto worst =
      std::max_element(by_group.begin(), by_group.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (worst != by_group.end()) {
    result.text =
        fmt::format("work of GPUs may be missing in {}: {}", seconds_text(result.total_s), causes);
    if (by_group.size() > 1)
      result.text += fmt::format("; in {} processes, most in {}", by_group.size(),
                                 model.groups[worst->first].name);
  }
  if (const uint64_t launches = missing_launches(devices); launches != 0) {
    const auto all = static_cast<double>(launches + kernels(devices));
    result.is_loss |= static_cast<double>(launches) > kLeastLaunchShare * all;
    result.text += fmt::format("{}{} of a kernel {} no kernel", result.text.empty() ? "" : "; ",
                               launches == 1 ? "1 launch" : grouped(launches) + " launches",
                               launches == 1 ? "has" : "have");
  }
  return result;
}

}  // namespace aon::writers::ledger
