/// The ledger (aon.json) in a few lines for people: where the files are, ranks, duration, records,
/// losses, measured overhead, findings, and what was not collected and why.
/// Thread: any.   Cost: proportional to the ledger.   Errors: a ledger with missing or odd keys
/// gives shorter lines, never a failure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/digits.h"
#include "core/base/result.h"

namespace aon::tools {

constexpr size_t kMaxSummaryLines = 10;

/// Reads DIR/aon.json.   Errors: kNotFound when there is none, kDamaged when it is no JSON.
Result<nlohmann::json> read_ledger(const std::string& dir);

/// From the job's start to its end; negative when unknown.
double job_seconds(const nlohmann::json& ledger);

/// Bytes of a line about a provider; the whole text is in the ledger.
constexpr size_t kMaxProviderLineBytes = 160;

/// At most kMaxSummaryLines lines without newlines.
std::vector<std::string> summary_lines(const nlohmann::json& ledger, const std::string& dir);

/// One line per provider that is not fully on: "perf degraded on 4 processes: reason (remedy)", cut
/// at kMaxProviderLineBytes; then "... on node NAME: ...", or "... on 64 nodes: ...", for what only
/// nodes say.
std::vector<std::string> provider_lines(const nlohmann::json& ledger);

/// What the ledger of `dir` says in short, for a terminal; empty without a ledger.
std::string summary_of(const std::string& dir);
/// Writes `text` to summary.txt: an aon-run that waits reads it there once its node's mark has
/// gone. Where that fails none is left, for it would be of another archive.
/// Errors: kNotFound without a text; kIo, kUnavailable, kNotFound as the file system has them.
Status leave_summary(const std::string& dir, const std::string& text);

}  // namespace aon::tools
