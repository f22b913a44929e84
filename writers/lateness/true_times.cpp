#include "writers/lateness/true_times.h"

#include <algorithm>

namespace aon::writers {
namespace {

/// Eighths of powers of two: 8 floor(log2) + the next three bits.
uint32_t eighth_of(uint64_t time_ns) {
  const uint32_t log2 = time_ns < 2 ? 0 : 63 - static_cast<uint32_t>(__builtin_clzll(time_ns));
  const uint64_t fraction = log2 >= 3 ? time_ns >> (log2 - 3) : time_ns << (3 - log2);
  return log2 * 8 + (static_cast<uint32_t>(fraction) & 7);
}

}  // namespace

/// Null where there is no room for another one.
TrueTimeTable::Spread* TrueTimeTable::spread_of(uint32_t communicator, uint32_t region,
                                                uint64_t bytes) {
  const auto key = std::tuple(communicator, region, bytes);
  auto found = spreads_.find(key);
  if (found == spreads_.end()) {
    if (spreads_.size() >= kMaxSizes) return nullptr;
    found = spreads_.try_emplace(key).first;
    found->second.row.least_ns = UINT64_MAX;
  }
  return &found->second;
}

bool TrueTimeTable::add(uint32_t communicator, uint32_t region, uint64_t bytes, uint64_t time_ns) {
  Spread* spread = spread_of(communicator, region, bytes);
  if (spread == nullptr) return false;
  TrueTimes& row = spread->row;
  row.least_ns = std::min(row.least_ns, time_ns);
  row.longest_ns = std::max(row.longest_ns, time_ns);
  ++row.count;
  Times& times = spread->times[eighth_of(time_ns)];
  ++times.count;
  times.sum_ns += time_ns;
  return true;
}

void TrueTimeTable::judge(Spread* spread) {
  TrueTimes& row = spread->row;
  uint64_t before = 0;
  for (const auto& [eighth, times] : spread->times) {
    before += times.count;
    if (before * 2 < row.count) continue;
    row.usual_ns = times.sum_ns / times.count;
    break;
  }
  for (const auto& [eighth, times] : spread->times) {
    const double mean_ns = static_cast<double>(times.sum_ns) / static_cast<double>(times.count);
    if (mean_ns < kSlowOperationRatio * static_cast<double>(row.usual_ns)) continue;
    row.slow_count += times.count;
    row.slow_ns += times.sum_ns - times.count * row.usual_ns;
  }
}

void TrueTimeTable::save(StateOut* out) const {
  out->put(uint64_t{spreads_.size()});
  for (const auto& [key, spread] : spreads_) {
    const auto [communicator, region, bytes] = key;
    out->put(communicator);
    out->put(region);
    out->put(bytes);
    out->put(spread.row);
    out->put(spread.times);
  }
}

Status TrueTimeTable::load(StateIn* in, uint64_t* left_out_count) {
  uint64_t count = 0;
  if (!in->get(&count)) return in->status();
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t communicator = 0;
    uint32_t region = 0;
    uint64_t bytes = 0;
    Spread one;
    const bool is_good = in->get(&communicator) && in->get(&region) && in->get(&bytes) &&
                         in->get(&one.row) && in->get(&one.times);
    if (!is_good) break;
    Spread* spread = spread_of(communicator, region, bytes);
    if (spread == nullptr) {
      *left_out_count += one.row.count;
      continue;
    }
    spread->row.least_ns = std::min(spread->row.least_ns, one.row.least_ns);
    spread->row.longest_ns = std::max(spread->row.longest_ns, one.row.longest_ns);
    spread->row.count += one.row.count;
    for (const auto& [eighth, times] : one.times) {
      spread->times[eighth].count += times.count;
      spread->times[eighth].sum_ns += times.sum_ns;
    }
  }
  return in->status();
}

std::vector<TrueTimes> TrueTimeTable::take() {
  std::vector<TrueTimes> rows;
  rows.reserve(spreads_.size());
  for (auto& [key, spread] : spreads_) {
    std::tie(spread.row.communicator, spread.row.region, spread.row.bytes) = key;
    judge(&spread);
    rows.push_back(spread.row);
  }
  spreads_.clear();
  return rows;
}

const TrueTimes* find_slowest(const std::vector<TrueTimes>& rows) {
  const TrueTimes* worst = nullptr;
  for (const TrueTimes& row : rows) {
    if (row.slow_ns > (worst == nullptr ? 0 : worst->slow_ns)) worst = &row;
  }
  return worst;
}

}  // namespace aon::writers
