/// The ledger (aon.json) in a few lines for people: where the files are, ranks, duration, records,
/// losses, measured overhead, findings, and what was not collected and why.
/// Thread: any.   Cost: proportional to the ledger.   Errors: a ledger with missing or odd keys
/// gives shorter lines, never a failure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon::tools {

constexpr size_t kMaxSummaryLines = 10;

/// Reads DIR/aon.json.   Errors: kNotFound when there is none, kDamaged when it is no JSON.
Result<nlohmann::json> read_ledger(const std::string& dir);

/// At most kMaxSummaryLines lines without newlines.
std::vector<std::string> summary_lines(const nlohmann::json& ledger, const std::string& dir);

/// One line per provider that is not fully on: "perf: degraded on 4 ranks: reason (remedy)".
std::vector<std::string> provider_lines(const nlohmann::json& ledger);

/// 1234567 as "1 234 567".
std::string grouped(uint64_t value);

}  // namespace aon::tools
