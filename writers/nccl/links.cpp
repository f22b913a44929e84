// Which links are slow, by what transfers between two members took without waiting.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/median.h"
#include "core/spool/same_machine.h"
#include "writers/nccl/lateness.h"
#include "writers/nccl/operations.h"

namespace aon::writers::nccl {
namespace {

constexpr size_t kLeastLinks = 4;  ///< of one size, to say what is usual

/// Links that may be compared: of one size, within nodes or between them.
using LinkClass = std::pair<uint32_t, bool>;

LinkClass class_of(const LinkRow& row) { return {row.log2_bytes, row.is_in_node}; }

/// Mean time of a transfer. Large ones take as long as they have bytes: as if all had 2^log2_bytes.
double mean_ns_of(const LinkRow& row) {
  constexpr uint32_t kLargeLog2 = 16;
  const double mean_ns = static_cast<double>(row.time_ns) / static_cast<double>(row.count);
  const double mean_bytes = static_cast<double>(row.bytes) / static_cast<double>(row.count);
  if (row.log2_bytes < kLargeLog2 || mean_bytes <= 0) return mean_ns;
  return mean_ns * static_cast<double>(uint64_t{1} << row.log2_bytes) / mean_bytes;
}

}  // namespace

void LatenessAnalysis::add_link(std::span<const Part> ends, uint64_t time_ns) {
  const uint32_t size = log2_of(ends[0].bytes);
  const auto key = std::tuple(ends[0].member, ends[1].member, size);
  if (links_.size() >= kMaxLinks && links_.count(key) == 0) {
    ++summary_.left_out_count;
    return;
  }
  LinkRow& row = links_[key];
  row.source = ends[0].member;
  row.destination = ends[1].member;
  row.log2_bytes = size;
  ++row.count;
  row.bytes += ends[0].bytes;
  row.time_ns += time_ns;
}

void LatenessAnalysis::judge_links() {
  std::map<LinkClass, std::vector<uint64_t>> by_class;
  const spool::HomeNodes homes(*model_->job);
  for (auto& [key, row] : links_) {
    const auto node_of = [&](uint32_t member) {
      return model_->groups[summary_.members[member].group].node;
    };
    row.is_in_node =
        spool::is_same_machine(*model_->job, homes, node_of(row.source), node_of(row.destination));
    by_class[class_of(row)].push_back(static_cast<uint64_t>(mean_ns_of(row)));
  }
  std::map<LinkClass, uint64_t> medians;
  for (auto& [link_class, times] : by_class) medians[link_class] = upper_median(std::move(times));
  for (auto& [key, row] : links_) {
    row.ratio = mean_ns_of(row) / std::max(static_cast<double>(medians[class_of(row)]), 1.0);
    summary_.links.push_back(row);
  }
  links_.clear();
}

SlowLink find_slow_link(const LatenessSummary& summary) {
  std::map<LinkClass, size_t> link_counts;
  for (const LinkRow& row : summary.links) ++link_counts[class_of(row)];
  std::map<std::pair<uint32_t, uint32_t>, SlowLink> slow;
  for (const LinkRow& row : summary.links) {
    if (link_counts[class_of(row)] < kLeastLinks || row.ratio < kSlowRatio) continue;
    SlowLink& link = slow[{row.source, row.destination}];
    link.source = row.source;
    link.destination = row.destination;
    link.count += row.count;
    link.time_ns += row.time_ns;
    link.beyond_ns +=
        row.time_ns - static_cast<uint64_t>(static_cast<double>(row.time_ns) / row.ratio);
  }
  SlowLink slowest;
  for (const auto& [pair, link] : slow) {
    if (link.beyond_ns > slowest.beyond_ns) slowest = link;
  }
  return slowest;
}

}  // namespace aon::writers::nccl
