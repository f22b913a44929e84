#include "writers/steps/statistics.h"

#include <algorithm>
#include <cmath>

namespace aon::writers::steps {

uint64_t quantile(std::vector<uint64_t> values, double share) {
  if (values.empty()) return 0;
  const auto at = std::llround(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

void StepSums::add(const StepRow& row, bool is_matched) {
  ++count_;
  matched_count_ += is_matched ? 1 : 0;
  sum_ns_ += row.part_ns[static_cast<size_t>(StepPart::kDuration)];
  for (size_t i = 0; i < kStepPartCount; ++i) {
    Part& part = parts_[i];
    const uint64_t value_ns = row.part_ns[i];
    const auto value = static_cast<double>(value_ns);
    const double distance = value - part.mean;
    part.mean += distance / static_cast<double>(count_);
    part.squares += distance * (value - part.mean);
    part.min_ns = std::min(part.min_ns, value_ns);
    part.max_ns = std::max(part.max_ns, value_ns);
    part.spaced.add(value_ns);
  }
}

StepStatistics StepSums::result() const {
  StepStatistics result;
  result.count = count_;
  result.matched_count = matched_count_;
  result.sum_ns = sum_ns_;
  for (size_t i = 0; i < kStepPartCount && count_ != 0; ++i) {
    const Part& part = parts_[i];
    const double variance = part.squares / static_cast<double>(count_);
    result.parts[i] = {part.mean,
                       std::sqrt(std::max(variance, 0.0)),
                       part.min_ns,
                       quantile(part.spaced.values(), 0.5),
                       quantile(part.spaced.values(), 0.95),
                       part.max_ns};
  }
  const std::vector<uint64_t>& durations = parts_[0].spaced.values();
  const auto tenth = static_cast<std::ptrdiff_t>((durations.size() + 9) / 10);
  result.first_ns = quantile({durations.begin(), durations.begin() + tenth}, 0.5);
  result.last_ns = quantile({durations.end() - tenth, durations.end()}, 0.5);
  return result;
}

void RowKeeper::thin_out() {
  const uint64_t quarter = max_rows_ / 4;
  const auto is_end = [&](const Kept& kept) {
    return kept.index < quarter || kept.index + quarter >= count_;
  };
  const uint64_t room = max_rows_ - 2 * quarter;
  while ((count_ - std::min(count_, 2 * quarter)) / stride_ + 1 > room) stride_ *= 2;
  std::erase_if(rows_,
                [&](const Kept& kept) { return !is_end(kept) && kept.index % stride_ != 0; });
}

}  // namespace aon::writers::steps
