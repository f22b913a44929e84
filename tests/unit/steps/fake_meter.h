/// A meter that tells the summary that a test wants.
#pragma once

#include <utility>
#include <vector>

#include "writers/steps/steps.h"

namespace aon::writers::test {

class FakeMeter final : public StepMeter {
 public:
  explicit FakeMeter(StepSummary summary) : summary_(std::move(summary)) {}
  const StepSummary* summary() const override { return &summary_; }
  const std::vector<StepRow>& rows_so_far() const override { return summary_.rows; }
  Status begin(const Model&) override { return {}; }
  Status begin_location(const Location&) override { return {}; }
  Status events(std::span<const Event>) override { return {}; }
  Status end_location() override { return {}; }
  Status finish(const Outcome&) override { return {}; }

 private:
  StepSummary summary_;
};

}  // namespace aon::writers::test
