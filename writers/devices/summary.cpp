#include "writers/devices/summary.h"

#include <algorithm>

namespace aon::writers::devices {
namespace {

template <class Row>
void append_up_to(size_t limit, const std::vector<Row>& more, std::vector<Row>* rows,
                  uint64_t* left_out_count) {
  const size_t count = std::min(more.size(), limit - std::min(limit, rows->size()));
  rows->insert(rows->end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(count));
  *left_out_count += more.size() - count;
}

}  // namespace

void add_external_ids(const std::vector<ExternalIdRow>& rows, DeviceSummary* summary) {
  for (const ExternalIdRow& row : rows) {
    if (summary->external_ids.size() < DeviceAnalysis::kMaxExternalIds) {
      summary->external_ids.push_back(row);
    } else {
      summary->left_out_external_count += row.call_count;
    }
  }
}

void save_summary(StateOut* out, const DeviceSummary& summary) {
  out->put(summary.uses);
  out->put(summary.steps);
  out->put(summary.launches);
  out->put(summary.nccl);
  out->put(summary.unrecorded);
  out->put(summary.external_ids);
  out->put(summary.left_out_external_count);
  out->put(summary.unmatched_nccl_count);
  out->put(summary.left_out_nccl_count);
  out->put(summary.left_out_count);
  out->put(summary.left_out_step_count);
  out->put(summary.left_out_call_count);
  out->put(summary.joined_launch_count);
}

Status add_saved(StateIn* in, const Model& model, DeviceSummary* summary) {
  DeviceSummary more;
  if (!in->get(&more.uses) || !in->get(&more.steps) || !in->get(&more.launches) ||
      !in->get(&more.nccl) || !in->get(&more.unrecorded) || !in->get(&more.external_ids) ||
      !in->get(&more.left_out_external_count) || !in->get(&more.unmatched_nccl_count) ||
      !in->get(&more.left_out_nccl_count) || !in->get(&more.left_out_count) ||
      !in->get(&more.left_out_step_count) || !in->get(&more.left_out_call_count) ||
      !in->get(&more.joined_launch_count))
    return in->status();
  const auto is_of_group = [&](const auto& row) { return row.group < model.groups.size(); };
  const auto has_bound = [&](const auto& row) {
    return is_of_group(row) && static_cast<size_t>(row.bound) < kBoundCount;
  };
  const auto has_cause = [&](const UnrecordedTime& row) {
    return is_of_group(row) && static_cast<size_t>(row.cause) < kGapCauseCount;
  };
  const auto has_kind = [&](const ExternalIdRow& row) {
    return is_of_group(row) && is_external_kind(static_cast<uint32_t>(row.kind));
  };
  if (!in->check(std::all_of(more.uses.begin(), more.uses.end(), has_bound) &&
                 std::all_of(more.steps.begin(), more.steps.end(), has_bound) &&
                 std::all_of(more.launches.begin(), more.launches.end(), is_of_group) &&
                 std::all_of(more.nccl.begin(), more.nccl.end(), is_of_group) &&
                 std::all_of(more.external_ids.begin(), more.external_ids.end(), has_kind) &&
                 std::all_of(more.unrecorded.begin(), more.unrecorded.end(), has_cause)))
    return in->status();
  constexpr size_t kNoLimit = SIZE_MAX;
  uint64_t none = 0;
  append_up_to(kNoLimit, more.uses, &summary->uses, &none);
  append_up_to(kNoLimit, more.launches, &summary->launches, &none);
  append_up_to(kNoLimit, more.unrecorded, &summary->unrecorded, &none);
  append_up_to(DeviceAnalysis::kMaxSteps, more.steps, &summary->steps,
               &summary->left_out_step_count);
  append_up_to(DeviceAnalysis::kMaxNcclRows, more.nccl, &summary->nccl,
               &summary->left_out_nccl_count);
  add_external_ids(more.external_ids, summary);
  summary->left_out_external_count += more.left_out_external_count;
  summary->unmatched_nccl_count += more.unmatched_nccl_count;
  summary->left_out_nccl_count += more.left_out_nccl_count;
  summary->left_out_count += more.left_out_count;
  summary->left_out_step_count += more.left_out_step_count;
  summary->left_out_call_count += more.left_out_call_count;
  summary->joined_launch_count += more.joined_launch_count;
  return {};
}

}  // namespace aon::writers::devices
