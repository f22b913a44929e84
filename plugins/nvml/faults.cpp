#include "nvml/faults.h"

#include <aon/gpu_counter_access.h>

#include <cmath>

#include "nvml/library.h"

namespace aon::nvml {
namespace {

constexpr uint32_t kMaxErrors = 3;
constexpr uint32_t kMaxPassingErrors = 10;

bool is_lost_code(uint32_t code) { return code == kGpuIsLost || code == kResetRequired; }
bool is_final(uint32_t code) {
  return code == kNotSupported || code == kNoPermission || code == kFunctionNotFound;
}
bool is_passing(uint32_t code) { return code == kTimeout || code == kInUse || code == kNoData; }

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string label_of(const std::vector<std::string>& labels, uint32_t gpu) {
  return gpu < labels.size() ? labels[gpu] : "GPU " + std::to_string(gpu);
}

/// With one digit, which changes seldom: each change is a line of the ledger's.
std::string share_text(double share) {
  const long percent = std::lround(100 * share);
  if (percent == 0) return "less than 1 %";
  return std::to_string(percent < 10 ? percent : percent / 10 * 10) + " %";
}

}  // namespace

bool Faults::note(uint32_t gpu, const std::string& query, uint32_t code) {
  Row& row = rows_[{gpu, query}];
  ++row.count;
  row.failed_count += code != kSuccess ? 1 : 0;
  if (code == kSuccess) {
    row.errors_in_a_row = 0;
    return true;
  }
  row.code = code;
  if (is_lost_code(code)) {
    lost_.try_emplace(gpu, code);
    return false;
  }
  ++row.errors_in_a_row;
  const uint32_t limit = is_final(code) ? 1 : is_passing(code) ? kMaxPassingErrors : kMaxErrors;
  row.is_off = row.errors_in_a_row >= limit;
  return !row.is_off;
}

void Faults::tell(const std::vector<std::string>& labels, node::StateText* state) const {
  const auto label = [&](uint32_t gpu) { return label_of(labels, gpu); };
  for (const auto& [gpu, code] : lost_) {
    state->add(AON_STATE_DEGRADED, label(gpu) + ": " + code_text(code), code_remedy(code));
  }
  // The same queries of the same GPUs are one line: first whose they are, then what they are.
  std::map<std::pair<uint32_t, std::string>, std::set<std::string>> gpus_of;
  for (const auto& [key, row] : rows_) {
    if (row.is_off) gpus_of[{row.code, key.second}].insert(label(key.first));
  }
  std::map<std::pair<uint32_t, std::string>, std::set<std::string>> queries_of;
  for (const auto& [key, gpus] : gpus_of) {
    const bool is_all = gpus.size() == labels.size();
    queries_of[{key.first, is_all ? std::string() : joined(gpus)}].insert(key.second);
  }
  for (const auto& [key, queries] : queries_of) {
    const bool is_normal = key.first == kNotSupported || key.first == kFunctionNotFound;
    const bool is_gpm = queries.count("GPM") != 0 && key.first == kNoPermission;
    state->add(is_normal ? AON_STATE_ON : AON_STATE_DEGRADED,
               joined(queries) + (key.second.empty() ? "" : " of " + key.second) + ": " +
                   code_text(key.first),
               is_gpm ? kGpuCounterRemedy : code_remedy(key.first));
  }
  tell_failed(labels, state);
}

void Faults::tell_failed(const std::vector<std::string>& labels, node::StateText* state) const {
  constexpr double kMany = 0.05;
  struct Sum {
    uint64_t count = 0;
    uint64_t failed_count = 0;
    uint32_t code = kSuccess;
    std::set<std::string> gpus;
  };
  std::map<std::string, Sum> sums;  // by query
  for (const auto& [key, row] : rows_) {
    if (row.is_off || row.failed_count == 0 || lost_.count(key.first) != 0) continue;
    Sum& sum = sums[key.second];
    sum.count += row.count;
    sum.failed_count += row.failed_count;
    sum.code = row.code;
    sum.gpus.insert(label_of(labels, key.first));
  }
  for (const auto& [query, sum] : sums) {
    const double share = static_cast<double>(sum.failed_count) / static_cast<double>(sum.count);
    const bool is_all = sum.gpus.size() == labels.size();
    state->add(share > kMany ? AON_STATE_DEGRADED : AON_STATE_ON,
               query + (is_all ? "" : " of " + joined(sum.gpus)) + ": " + share_text(share) +
                   " of the readings failed (" + code_text(sum.code) + ")",
               code_remedy(sum.code));
  }
}

}  // namespace aon::nvml
