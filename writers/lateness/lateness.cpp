#include "writers/lateness/lateness.h"

#include <algorithm>
#include <tuple>

namespace aon::writers {

LatenessRow* LatenessTable::row(uint32_t communicator, uint32_t region, uint32_t group) {
  const Key key{key_of(communicator, region), group};
  const auto found = rows_.find(key);
  if (found != rows_.end()) return &found->second;
  if (rows_.size() >= kMaxLatenessRows) {
    ++left_out_count_;
    return nullptr;
  }
  LatenessRow& row = rows_[key];
  row.communicator = communicator;
  row.region = region;
  row.group = group;
  return &row;
}

LateMembers::LateMembers(std::span<const Attendance> members) : members_(members) {
  for (size_t i = 1; i < members.size(); ++i) {
    if (members[i].duration_ns < members[last_].duration_ns) last_ = i;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    longest_wait_ns_ = std::max(longest_wait_ns_, wait_ns(i));
    all_waits_ns_ += wait_ns(i);
  }
  for (size_t i = 0; i < members.size(); ++i) count_ += is_late(i) ? 1 : 0;
}

bool LateMembers::is_worth_telling() const {
  return count_ < members_.size() && all_waits_ns_ / (members_.size() - count_) >= kLeastLateNs;
}

void LatenessTable::add(uint32_t communicator, uint32_t region,
                        std::span<const Attendance> members) {
  if (members.size() < 2) return;
  ++operation_count_;
  const LateMembers late(members);
  const bool is_told = late.is_worth_telling();
  for (size_t i = 0; i < members.size(); ++i) {
    LatenessRow* row = this->row(communicator, region, members[i].group);
    if (row == nullptr) continue;
    ++row->count;
    row->wait_ns += late.wait_ns(i);
    row->least_ns += members[late.last()].duration_ns;
    if (!late.is_late(i)) continue;
    const uint64_t caused_ns = late.caused_ns(i);
    row->last_count += i == late.last() ? 1 : 0;
    row->caused_ns += caused_ns;
    row->max_caused_ns = std::max(row->max_caused_ns, caused_ns);
    if (!is_told) continue;
    ++row->late_count;
    row->shared_count += late.count() > 1 ? 1 : 0;
    row->late_caused_ns += caused_ns;
  }
}

std::vector<LatenessRow> LatenessTable::rows() const {
  std::vector<LatenessRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const LatenessRow& a, const LatenessRow& b) {
    return std::tie(a.communicator, a.region, a.group) <
           std::tie(b.communicator, b.region, b.group);
  });
  return rows;
}

void LatenessTable::save(StateOut* out) const {
  out->put(rows());
  out->put(operation_count_);
  out->put(left_out_count_);
}

Status LatenessTable::load(StateIn* in) {
  std::vector<LatenessRow> rows;
  uint64_t operation_count = 0;
  uint64_t left_out_count = 0;
  if (!in->get(&rows) || !in->get(&operation_count) || !in->get(&left_out_count))
    return in->status();
  operation_count_ += operation_count;
  left_out_count_ += left_out_count;
  for (const LatenessRow& one : rows) {
    LatenessRow* row = this->row(one.communicator, one.region, one.group);
    if (row == nullptr) {
      left_out_count_ += one.count - 1;  // row() has counted one
      continue;
    }
    row->count += one.count;
    row->last_count += one.last_count;
    row->wait_ns += one.wait_ns;
    row->caused_ns += one.caused_ns;
    row->max_caused_ns = std::max(row->max_caused_ns, one.max_caused_ns);
    row->late_count += one.late_count;
    row->shared_count += one.shared_count;
    row->late_caused_ns += one.late_caused_ns;
    row->least_ns += one.least_ns;
  }
  return {};
}

bool is_late(const Latecomer& latecomer) { return latecomer.late_count != 0; }

Latecomer find_latecomer(std::span<const LatenessRow> rows) {
  std::unordered_map<uint32_t, Latecomer> by_group;
  uint64_t all_ns = 0;
  for (const LatenessRow& row : rows) {
    Latecomer& one = by_group[row.group];
    one.group = row.group;
    one.count += row.count;
    one.late_count += row.late_count;
    one.shared_count += row.shared_count;
    one.caused_ns += row.late_caused_ns;
    all_ns += row.caused_ns;
  }
  Latecomer worst;
  for (const auto& [group, one] : by_group) {
    const bool is_worse =
        one.caused_ns != worst.caused_ns ? one.caused_ns > worst.caused_ns : group < worst.group;
    if (is_worse) worst = one;
  }
  worst.all_ns = all_ns;
  worst.together_ns = worst.caused_ns;
  const double least_ns = kAlikeShare * static_cast<double>(worst.caused_ns);
  for (const auto& [group, one] : by_group) {
    if (group == worst.group || !is_late(one) || static_cast<double>(one.caused_ns) < least_ns)
      continue;
    worst.alike.push_back(group);
    worst.together_ns += one.caused_ns;
  }
  std::sort(worst.alike.begin(), worst.alike.end());
  std::unordered_map<uint32_t, uint64_t> by_region;
  for (const LatenessRow& row : rows) {
    if (row.group != worst.group) continue;
    const uint64_t region_ns = by_region[row.region] += row.late_caused_ns;
    if (region_ns <= worst.region_ns) continue;
    worst.region = row.region;
    worst.region_ns = region_ns;
  }
  return worst;
}

}  // namespace aon::writers
