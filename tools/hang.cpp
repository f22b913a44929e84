#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "core/base/time.h"
#include "core/spool/job.h"
#include "tools/command.h"
#include "tools/job_folder.h"
#include "tools/ledger_summary.h"
#include "tools/live_job.h"
#include "tools/ras.h"
#include "writers/assemble/event_pass.h"
#include "writers/assemble/model.h"
#include "writers/hang/hang.h"

namespace aon::tools {
namespace {

using Lines = std::vector<std::string>;

bool uses_nccl(const spool::Process& process) {
  return std::any_of(
      process.communicators.begin(), process.communicators.end(),
      [](const auto& one) { return one.second.definition.kind == CommunicatorKind::kNccl; });
}

bool may_hang(const spool::Process& process) {
  return !process.open_calls.empty() || !process.stacks.empty() || uses_nccl(process);
}

/// Of a job whose spool is gone.
Result<Lines> lines_of_ledger(const std::string& dir) {
  const Result<nlohmann::json> ledger = read_ledger(dir);
  if (!ledger && ledger.error().code == Code::kNotFound)
    return Error{Code::kInvalid, dir + without_spool(dir)};
  if (!ledger) return ledger.error();
  Lines lines;
  const auto found = ledger->find("hangs");
  if (found == ledger->end() || !found->is_array()) return lines;
  for (const nlohmann::json& line : *found) {
    if (line.is_string()) lines.push_back(line.get<std::string>());
  }
  return lines;
}

/// Whether any call was ever seen open for long, a process quiet, or NCCL used: definitions say it,
/// events are not read.
Result<bool> may_hang(const std::string& dir) {
  const Result<spool::Job> job = spool::read_job(dir);
  if (!job) return job.error();
  return std::any_of(job->nodes.begin(), job->nodes.end(), [](const spool::Node& node) {
    return std::any_of(node.processes.begin(), node.processes.end(),
                       [](const auto& process) { return may_hang(process.second); });
  });
}

/// Now, on the time line of the job's events: REALTIME may have been set since.
uint64_t job_now_ns(const writers::JobModel& parts) {
  for (size_t n = 0; n < parts.job.nodes.size(); ++n) {
    const std::vector<ClockDefinition>& told = parts.job.nodes[n].clock;
    if (told.empty()) continue;
    return parts.clocks[n].to_ns(told.back().ticks) + wall_ns() - told.back().realtime_ns;
  }
  return wall_ns();
}

Result<Lines> lines_of_spool(const std::string& dir, const symbols::DebugSearch& search,
                             bool is_live) {
  const Result<bool> has_any = may_hang(dir);
  if (!has_any) return has_any.error();
  if (!*has_any) return Lines();
  const auto parts = writers::build_model(dir, writers::kDefaultOtf2Locations, search, false);
  if (!parts) return parts.error();
  std::vector<writers::WriterSlot> slots;
  auto finder = std::make_unique<writers::HangFinder>(is_live ? job_now_ns(**parts) : 0);
  const writers::HangFinder& found = *finder;
  slots.push_back({"hangs", std::move(finder), {}, false});
  constexpr uint64_t kWithoutDevices = writers::EventPass::kWithoutDevices;
  if (Status status = writers::EventPass(
                          **parts, slots, [] {}, kWithoutDevices)
                          .run();
      !status)
    return status.error();
  const writers::Model& model = (*parts)->model;
  return writers::hang_lines(model, found.report(), is_live ? job_now_ns(**parts) : model.end_ns);
}

/// Where somebody only writes the archive the job is over: its calls are as old as they were then.
bool has_agent(const std::string& dir) {
  const std::optional<LiveOwner> owner = find_live_owner(dir, 0);
  return owner && owner->role == "agent";
}

/// Whether NCCL of this job may answer on this host: one of its nodes, with a communicator of NCCL.
bool may_have_ras(const std::string& dir) {
  const Result<spool::Job> job = spool::read_job(dir);
  char host[256] = "";
  if (!job || gethostname(host, sizeof host - 1) != 0) return false;
  return std::any_of(job->nodes.begin(), job->nodes.end(), [&](const spool::Node& node) {
    return node.host == host &&
           std::any_of(node.processes.begin(), node.processes.end(),
                       [](const auto& process) { return uses_nccl(process.second); });
  });
}

/// What NCCL itself says of a job that runs. That nobody answers is told only to who asked for it.
/// Errors: kInvalid: what he asked for is no address.
Status print_ras(const HangOptions& options, bool is_live) {
  if (options.ras == "off") return {};
  std::string address = options.ras;
  if (address.empty()) {
    const char* enabled = std::getenv("NCCL_RAS_ENABLE");
    const bool is_off = enabled != nullptr && std::string_view(enabled) == "0";
    if (!is_live || is_off || !may_have_ras(options.dir)) return {};
    const char* told = std::getenv("NCCL_RAS_ADDR");
    address = told != nullptr && *told != '\0' ? told : kRasAddress;
  }
  const Result<std::vector<std::string>> lines = ask_ras(address);
  if (!lines) {
    if (options.ras.empty()) return {};
    if (lines.error().code == Code::kInvalid) return lines.error();
    fmt::print("{}\n", lines.error().message);
    return {};
  }
  fmt::print(
      "NCCL's RAS service at {} says (of whatever job answers there; it counts launches, not what "
      "has ended):\n",
      address);
  for (const std::string& line : *lines) fmt::print("  {}\n", line);
  return {};
}

}  // namespace

int hang(const HangOptions& options) {
  const Status spool = find_part(options.dir, "spool");
  if (!spool && spool.error().code != Code::kNotFound)
    return fail("hang", spool.error().message, kExitUse);
  const bool has_spool = spool.has_value();
  const bool is_live = has_spool && has_agent(options.dir);
  const Result<Lines> lines = has_spool
                                  ? lines_of_spool(options.dir, options.symbol_search, is_live)
                                  : lines_of_ledger(options.dir);
  if (!lines) {
    const bool is_use = lines.error().code == Code::kInvalid;
    return fail("hang", lines.error().message, is_use ? kExitUse : kExitFailed);
  }
  for (const std::string& line : *lines) fmt::print("{}\n", printable(line));
  if (lines->empty()) {
    fmt::print("no call {} open for longer than --hang says\n", is_live ? "is" : "was left");
  }
  if (Status status = print_ras(options, is_live); !status)
    return fail("hang", "--ras: " + status.error().message, kExitUse);
  return kExitDone;
}

}  // namespace aon::tools
