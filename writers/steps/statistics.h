/// Figures over the steps of one loop of one process, and which rows of it are kept.
/// Thread: one.   Cost: amortised constant per step; memory for kMaxQuantile steps and `max_rows`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "writers/steps/steps.h"

namespace aon::writers::steps {

constexpr size_t kMaxQuantile = 65536;

/// Every step's part, or of many every 2nd, 4th, ... of them.
class Spaced {
 public:
  void add(uint64_t value) {
    if (count_++ % stride_ != 0) return;
    if (values_.size() == kMaxQuantile) {
      size_t kept = 0;
      for (size_t i = 0; i < values_.size(); i += 2) values_[kept++] = values_[i];
      values_.resize(kept);
      stride_ *= 2;
      if ((count_ - 1) % stride_ != 0) return;
    }
    values_.push_back(value);
  }
  const std::vector<uint64_t>& values() const { return values_; }

 private:
  std::vector<uint64_t> values_;
  uint64_t count_ = 0;
  uint64_t stride_ = 1;
};

class StepSums {
 public:
  void add(const StepRow& row, bool is_matched);
  StepStatistics result() const;
  uint64_t count() const { return count_; }

 private:
  struct Part {
    double mean = 0;
    double squares = 0;  ///< of distances from the mean (B. P. Welford, Technometrics 4, 1962)
    uint64_t min_ns = UINT64_MAX;
    uint64_t max_ns = 0;
    Spaced spaced;
  };
  Part parts_[kStepPartCount];
  uint64_t count_ = 0;
  uint64_t matched_count_ = 0;
  uint64_t sum_ns_ = 0;
};

/// The first quarter and the last quarter of `max_rows` rows, and between them evenly spaced ones;
/// all of them when there are no more.
class RowKeeper {
 public:
  explicit RowKeeper(uint64_t max_rows) : max_rows_(max_rows < 4 ? 4 : max_rows) {}

  void add(const StepRow& row) {
    const uint64_t most = max_rows_ + max_rows_ / 4;  // a million of twice as many are 130 MB
    if (rows_.size() == rows_.capacity())
      rows_.reserve(std::min<uint64_t>(2 * rows_.size() + 64, most + 1));
    rows_.push_back({count_++, row});
    if (rows_.size() > most) thin_out();
  }
  /// Appends them.
  void take(std::vector<StepRow>* rows) {
    if (count_ > max_rows_) thin_out();
    for (const Kept& kept : rows_) rows->push_back(kept.row);
    rows_.clear();
  }

 private:
  struct Kept {
    uint64_t index;
    StepRow row;
  };
  void thin_out();

  uint64_t max_rows_;
  uint64_t count_ = 0;
  uint64_t stride_ = 1;
  std::vector<Kept> rows_;
};

/// Element at `share` of the sorted values; 0 without any.
uint64_t quantile(std::vector<uint64_t> values, double share);

}  // namespace aon::writers::steps
