#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/delivery/names.h"
#include "core/spool/files.h"
#include "tools/command.h"
#include "tools/job_folder.h"
#include "tools/json.h"
#include "tools/ledger_summary.h"
#include "tools/live_job.h"
#include "writers/assemble/leftover_rings.h"

namespace aon::tools {
namespace {

/// Rank, node, program, exit and counts of one process.
std::string rank_line(const nlohmann::json& rank) {
  const auto number = [&](const char* key) {
    const auto found = rank.find(key);
    return found != rank.end() && found->is_number() ? found->get<uint64_t>() : uint64_t{0};
  };
  const auto id = rank.find("rank");
  const std::string name = id != rank.end() && id->is_number() ? id->dump() : "-";
  std::string ending;
  if (const auto exit = rank.find("exit"); exit != rank.end() && exit->is_object()) {
    const auto code = exit->find("code");
    const auto signal = exit->find("signal");
    if (signal != exit->end() && signal->is_number() && *signal != 0) {
      ending = fmt::format("signal {}", signal->dump());
    } else if (code != exit->end() && code->is_number()) {
      ending = fmt::format("exit {}", code->dump());
    } else {
      ending = "unknown";
    }
  }
  return fmt::format("  {:>6}  {:<14} {:>8}  {:<10} {:>14} {:>10}  {}", name, text_of(rank, "node"),
                     number("pid"), ending, grouped(number("emitted")), grouped(number("lost")),
                     text_of(rank, "program"));
}

void print_ranks(const nlohmann::json& ledger) {
  constexpr size_t kShownRanks = 64;
  const auto ranks = ledger.find("ranks");
  if (ranks == ledger.end() || !ranks->is_array()) return;
  fmt::print("  {:>6}  {:<14} {:>8}  {:<10} {:>14} {:>10}  {}\n", "rank", "node", "pid", "end",
             "records", "lost", "program");
  size_t shown = 0;
  for (const nlohmann::json& rank : *ranks) {
    if (shown++ == kShownRanks) break;
    fmt::print("{}\n", printable(rank_line(rank)));
  }
  if (ranks->size() > kShownRanks)
    fmt::print("  ... {} more in aon.json\n", ranks->size() - kShownRanks);
}

/// What an agent left whose spool is elsewhere; "" when there is none.
std::string delivered_note(const std::string& folder) {
  const Result<std::string> text = read_text_file(folder + "/" + delivery::kDeliveredNote, 4096);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

/// Of processes that found no agent, and have begun or ended since the archive was made; "" when
/// all are in it. And of those that lie here and belong to other launches.
std::string leftover_note(const std::string& dir) {
  const writers::LeftoverRings rings = writers::find_leftover_rings(dir);
  std::string strays;
  for (const writers::StrayRing& stray : rings.strays)
    strays += (strays.empty() ? "" : "\n") + writers::describe(stray);
  const size_t count = rings.own.size();
  if (count == 0) return strays;
  return fmt::format("not in it: {} of {} that found no agent; run: aon finalize {}",
                     count == 1 ? "the file" : fmt::format("{} files", count),
                     count == 1 ? "a process" : "processes", dir) +
         (strays.empty() ? "" : "\n" + strays);
}

}  // namespace

int info(const InfoOptions& options) {
  if (const Status dir = find_part(options.dir, "."); !dir)
    return fail("info", dir.error().message, kExitUse);
  for (const spool::MissingLink& missing : spool::find_missing_links(options.dir))
    fail("info", spool::describe(missing));
  const std::optional<LiveOwner> live = find_live_owner(options.dir, 0);
  const Result<nlohmann::json> ledger = read_ledger(options.dir);
  if (!ledger) {
    if (live)
      return fail("info", describe(*live) + "; aon finalize --snapshot shows it now", kExitLive);
    if (const std::string note = delivered_note(options.dir); !note.empty()) {
      fmt::print("{}\n", note);
      return kExitDone;
    }
    const Status spool = find_part(options.dir, "spool");
    if (!spool && spool.error().code == Code::kNotFound)
      return fail("info", options.dir + without_spool(options.dir), kExitUse);
    return fail("info", ledger.error().message);
  }
  if (options.as_json) {
    std::cout << ledger->dump(2) << "\n";
    return kExitDone;
  }
  if (live) fmt::print("{}\n", describe(*live));
  for (const std::string& line : summary_lines(*ledger, options.dir))
    fmt::print("{}\n", printable(line));
  if (const std::string note = leftover_note(options.dir); !note.empty() && !live)
    fmt::print("{}\n", note);
  print_ranks(*ledger);
  return kExitDone;
}

}  // namespace aon::tools
