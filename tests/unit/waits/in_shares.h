/// The same job analysed by two shares, for comparison with one process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/temporary_folder.h"
#include "writers/waits/shares.h"

namespace aon::writers::test {

/// All figures of a summary, as text.
inline std::vector<std::string> figures(const WaitSummary& summary) {
  std::vector<std::string> lines;
  const auto add = [&](auto... values) {
    std::string line;
    ((line += std::to_string(values) + " "), ...);
    lines.push_back(line);
  };
  for (const WaitRow& row : summary.rows) {
    add(row.location, row.region, static_cast<int>(row.kind), row.count, row.wait_ns, row.max_ns,
        row.uncertain_ns, row.is_polled);
  }
  const ClockViolations& violations = summary.clock_violations;
  add(violations.message_count, violations.collective_count, violations.max_ns);
  for (const auto& [nodes, ns] : violations.by_nodes) add(nodes.first, nodes.second, ns);
  add(summary.message_count, summary.unmatched_count, summary.collective_count,
      summary.incomplete_count, summary.times_left_out_count, summary.alike_failure_count,
      summary.uncompared_count);
  for (uint8_t hole = 0; hole < kHoleCount; ++hole) add(summary.holes[static_cast<Hole>(hole)]);
  for (const LatenessRow& row : summary.lateness.rows()) {
    add(row.communicator, row.region, row.group, row.count, row.last_count, row.wait_ns,
        row.caused_ns, row.max_caused_ns, row.late_count, row.shared_count, row.late_caused_ns,
        row.least_ns);
  }
  add(summary.lateness.operation_count());
  for (const TrueTimes& row : summary.times) {
    add(row.communicator, row.region, row.bytes, row.count, row.least_ns, row.usual_ns,
        row.longest_ns, row.slow_count, row.slow_ns);
  }
  return lines;
}

/// Locations are those of `events`, by index; groups take turns.
inline WaitSummary analyse_in_shares(const Model& model,
                                     const std::vector<std::vector<Event>>& events) {
  const aon::test::TemporaryFolder folder;
  ShareMap shares{2, {}};
  for (size_t i = 0; i < model.groups.size(); ++i)
    shares.of_group.push_back(static_cast<uint32_t>(i % 2));
  for (uint32_t share = 0; share < shares.count; ++share) {
    const auto waits = make_wait_share(folder.path(), shares, [] {});
    EXPECT_TRUE(waits->begin(model));
    for (size_t i = 0; i < events.size(); ++i) {
      if (shares.of_group[model.locations[i].group] != share) continue;
      EXPECT_TRUE(waits->begin_location(model.locations[i]));
      EXPECT_TRUE(waits->events(events[i]));
      EXPECT_TRUE(waits->end_location());
    }
    EXPECT_TRUE(waits->write(folder.path(), share));
  }
  for (uint32_t share = 0; share < shares.count; ++share)
    EXPECT_TRUE(match_share(model, shares, share, folder.path(), folder.path(), [] {}));
  Result<WaitSummary> summary = load_wait_summary(shares, folder.path());
  EXPECT_TRUE(summary);
  for (uint32_t share = 0; share < shares.count; ++share) {
    const auto own = make_share_waits(shares, share, folder.path(), folder.path(), [] {});
    EXPECT_TRUE(own);
    const std::vector<WaitRow>& rows = (*own)->summary()->rows;
    summary->rows.insert(summary->rows.end(), rows.begin(), rows.end());
  }
  std::sort(summary->rows.begin(), summary->rows.end(), [](const WaitRow& a, const WaitRow& b) {
    return std::tie(a.location, a.region, a.kind) < std::tie(b.location, b.region, b.kind);
  });
  return std::move(summary).value();
}

}  // namespace aon::writers::test
