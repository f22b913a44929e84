#include "tools/ledger_summary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "core/base/file.h"
#include "core/provider/names.h"
#include "tools/job_folder.h"
#include "tools/json.h"

namespace aon::tools {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxLedgerBytes = size_t{1} << 30;
constexpr size_t kMaxShownWarnings = 2;
constexpr size_t kMaxShownFindings = 3;
constexpr const char* kCut = "... (see aon.json)";
constexpr size_t kMaxNamed = 8;  ///< ranks or processes in one line

uint64_t count_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number() && value.get<double>() > 0 ? static_cast<uint64_t>(value.get<double>())
                                                      : 0;
}

/// Seconds between two ISO-8601 times of the same day form; negative when unknown.
double seconds_between(const std::string& start, const std::string& end) {
  const auto parse = [](const std::string& text) {
    std::tm parts{};
    const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == nullptr) return -1.0;
    double fraction = 0;
    if (*rest == '.') fraction = std::strtod(rest, nullptr);
    return static_cast<double>(timegm(&parts)) + fraction;
  };
  const double from = parse(start);
  const double to = parse(end);
  return from < 0 || to < from ? -1.0 : to - from;
}

struct Totals {
  std::set<std::string> nodes;
  uint64_t rank_count = 0;
  uint64_t other_count = 0;
  uint64_t emitted = 0;
  uint64_t lost = 0;
  uint64_t sample_count = 0;
  uint64_t call_path_count = 0;  ///< the same of call paths
};

Totals totals_of(const Json& ledger) {
  Totals totals;
  for (const Json& rank : member(ledger, "ranks")) {
    if (const std::string node = text_of(rank, "node"); !node.empty()) totals.nodes.insert(node);
    if (member(rank, "rank").is_number()) {
      ++totals.rank_count;
    } else if (!rank.contains("late_answer")) {  // it stands there once more, with its records
      ++totals.other_count;
    }
    totals.emitted += count_of(rank, "emitted");
    totals.lost += count_of(rank, "lost");
    for (const char* name : {"perf", "process"})
      totals.sample_count += count_of(member(member(rank, "providers"), name), "emitted");
    totals.call_path_count += count_of(member(member(rank, "providers"), "sampling"), "emitted");
  }
  return totals;
}

/// "1 200 pool full, 17 evicted by cap"; empty when nothing was lost.
std::string loss_text(const Json& ledger) {
  std::map<std::string, uint64_t> by_reason;
  for (const Json& loss : member(ledger, "losses"))
    by_reason[text_of(loss, "reason")] += count_of(loss, "count");
  std::string text;
  for (const auto& [reason, count] : by_reason)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), reason);
  return text;
}

std::string file_list(const std::string& dir) {
  std::string text;
  for (const char* name :
       {"traces.otf2", "samples/traces.otf2", "profile.h5", "aon.json", "spool"}) {
    std::error_code ignored;
    if (std::filesystem::exists(dir + "/" + name, ignored))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

std::string rank_line(const Json& ledger, const Totals& totals) {
  std::string text = fmt::format("{} rank{}", totals.rank_count, totals.rank_count == 1 ? "" : "s");
  if (totals.other_count != 0)
    text += fmt::format(", {} other process{}", totals.other_count,
                        totals.other_count == 1 ? "" : "es");
  text += fmt::format(" on {} node{}", totals.nodes.size(), totals.nodes.size() == 1 ? "" : "s");
  const double duration_s = job_seconds(ledger);
  if (duration_s >= 0) text += fmt::format(", {:.3f} s", duration_s);
  return text;
}

std::string record_line(const Json& ledger, const Totals& totals) {
  if (totals.emitted == 0 && totals.sample_count + totals.call_path_count != 0) {
    std::string text =
        fmt::format("no calls recorded; {} samples of counters", grouped(totals.sample_count));
    if (totals.call_path_count != 0)
      text += fmt::format(", {} of call paths", grouped(totals.call_path_count));
    return text;
  }
  std::string text = fmt::format("{} records", grouped(totals.emitted));
  // Of those nobody can tell what was in their rings.
  const Json& job = member(ledger, "job");
  const Json& nodes = member(job, "lost_nodes");
  const bool may_miss = count_of(job, "unseen_ends") != 0 || (nodes.is_array() && !nodes.empty());
  if (totals.lost != 0)
    text += fmt::format(", {} lost ({})", grouped(totals.lost), loss_text(ledger));
  if (may_miss) return text + ", what else there was is not known";
  return totals.lost != 0 ? text : text + ", none lost";
}

/// "0, 1 and 3 more"; empty for none.
std::string first_of(const std::vector<std::string>& texts) {
  std::string text;
  for (size_t i = 0; i < texts.size() && i < kMaxNamed; ++i)
    text += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > kMaxNamed) text += fmt::format(" and {} more", texts.size() - kMaxNamed);
  return text;
}

std::string incomplete_line(const Json& ledger) {
  const Json& job = member(ledger, "job");
  const Json& complete = member(job, "complete");
  if (!complete.is_boolean() || complete.get<bool>()) return {};
  std::vector<std::string> ranks;
  for (const Json& rank : member(job, "incomplete_ranks")) ranks.push_back(rank.dump());
  std::vector<std::string> processes;
  for (const Json& process : member(job, "incomplete_processes")) {
    processes.push_back(fmt::format("{} on {} ({})", count_of(process, "pid"),
                                    text_of(process, "node"), text_of(process, "reason")));
  }
  std::vector<std::string> nodes;
  std::vector<std::string> refused_nodes;
  for (const Json& node : member(job, "lost_nodes")) {
    const std::string name = node.is_string() ? node.get<std::string>() : node.dump();
    const std::string refusal = text_of(member(job, "refused_nodes"), name.c_str());
    if (refusal.empty()) nodes.push_back(name);
    if (!refusal.empty()) refused_nodes.push_back(name + " (" + refusal + ")");
  }
  std::string text;
  if (!nodes.empty()) text = "nodes that were lost, or their agents: " + first_of(nodes);
  if (!refused_nodes.empty())
    text += (text.empty() ? "" : "; ") +
            ("spools that stay on their nodes: " + first_of(refused_nodes));
  if (!ranks.empty()) text += (text.empty() ? "" : "; ") + ("incomplete ranks: " + first_of(ranks));
  if (!processes.empty())
    text += (text.empty() ? "" : "; ") + ("incomplete processes: " + first_of(processes));
  if (!text.empty()) return text;
  const std::string reason = text_of(job, "reason");
  return "the job is not complete" + (reason.empty() ? "" : ": " + reason);
}

/// What CUPTI does in the program's calls is its own and in no figure of the agent's. The provider
/// tells it, unless it is little or the process was killed early.
const char* cupti_text(const Json& ledger) {
  const char* text = "";
  for (const Json& rank : member(ledger, "ranks")) {
    const Json& cupti = member(member(rank, "providers"), "cupti");
    const std::string state = text_of(cupti, "state");
    if (state != "on" && state != "degraded") continue;
    if (text_of(cupti, "reason").find("CUPTI took") != std::string::npos)
      return ", CUPTI's own apart (aon.json tells it)";
    text = ", CUPTI's own apart";
  }
  return text;
}

/// Beside ranks that sleep or wait in the kernel a part of their CPU time says little. Empty: the
/// budget was kept.
std::string cost_text(const Json& ledger, double percent) {
  const Json& budget = member(member(ledger, "budget"), "percent");
  const Json& overhead = member(ledger, "overhead");
  const Json& app_s = member(overhead, "app_cpu_s");
  const Json& agent_s = member(overhead, "agent_cpu_s");
  const double duration_s = job_seconds(ledger);
  if (!budget.is_number() || percent <= budget.get<double>() || !app_s.is_number() ||
      !agent_s.is_number() || duration_s <= 0)
    return "";
  return fmt::format(": {:.3f} s of CPU time in {:.3f} s",
                     app_s.get<double>() + agent_s.get<double>(), duration_s);
}

std::string overhead_line(const Json& ledger) {
  const Json& overhead = member(ledger, "overhead");
  const Json& percent = member(overhead, "percent");
  if (!percent.is_number()) {
    const std::string reason = text_of(overhead, "reason");
    return reason.empty() ? "" : "overhead not measured: " + reason;
  }
  const Json& budget = member(member(ledger, "budget"), "percent");
  return fmt::format(
      "overhead {:.2f} % of the ranks' CPU time{}{}{}", percent.get<double>(),
      budget.is_number() ? fmt::format(" (budget {:g} %)", budget.get<double>()) : std::string(),
      cost_text(ledger, percent.get<double>()), cupti_text(ledger));
}

/// "energy 12.3 kJ, 410 W: packages and memory of 2 nodes, ..."; empty when nothing is known.
std::string energy_line(const Json& ledger) {
  const Json& energy = member(ledger, "energy");
  const Json& joules = member(energy, "joules");
  if (!joules.is_number()) return {};
  const double value_j = joules.get<double>();
  const uint64_t node_count = count_of(energy, "nodes");
  std::string text = value_j >= 1e6   ? fmt::format("energy {:.2f} MJ", value_j / 1e6)
                     : value_j >= 1e3 ? fmt::format("energy {:.2f} kJ", value_j / 1e3)
                                      : fmt::format("energy {:.1f} J", value_j);
  const Json& seconds = member(energy, "seconds");
  if (seconds.is_number() && seconds.get<double>() > 0)
    text += fmt::format(", {:.0f} W", value_j / seconds.get<double>());
  const std::string covers = text_of(energy, "covers");  // "WHAT of the nodes, ..."
  return text + fmt::format(" ({} of {} node{}, node-wide)", covers.substr(0, covers.find(" of ")),
                            node_count, node_count == 1 ? "" : "s");
}

bool is_unwanted(const std::string& reason) {
  return reason == provider::kExcludedReason || reason == provider::kNotChosenReason;
}

/// Variables that kept a plugin of ours out of the programs, each with its remedy.
std::string left_alone_text(const Json& ledger) {
  std::set<std::string> said;
  for (const Json& node : member(ledger, "nodes")) {
    for (const Json& one : member(node, "providers")) {
      if (const std::string reason = text_of(one, "reason"); provider::is_left_alone(reason))
        said.insert(fmt::format("{} ({}); ", reason, text_of(one, "remedy")));
    }
  }
  return fmt::format("{}", fmt::join(said, ""));
}

/// Why no process is in the ledger.
std::string why_nothing(const Json& ledger) {
  bool are_all_watched = false;
  for (const Json& node : member(ledger, "nodes")) {
    const Json& mpi = member(member(node, "providers"), "mpi");
    const std::string reason = text_of(mpi, "reason");
    const bool is_off = text_of(mpi, "state") == "off";
    if (is_off && !is_unwanted(reason)) return "mpi is off: " + reason;
    are_all_watched |= is_off;  // without MPI's calls, each program from its start
    const Json& recording = member(member(node, "providers"), "recording");
    if (recording.is_object())
      return fmt::format("{} ({})", text_of(recording, "reason"), text_of(recording, "remedy"));
  }
  const Json& warnings = member(member(ledger, "assembly"), "warnings");
  if (warnings.is_array() && !warnings.empty() && warnings[0].is_string())
    return warnings[0].get<std::string>();
  if (are_all_watched)
    return left_alone_text(ledger) + "the program ended before it could be watched";
  return left_alone_text(ledger) +
         "no process called MPI or made an annotation (counters and samples of a short program "
         "without MPI: aon-run --without mpi); or it looks MPI's functions up in MPI's own "
         "library, LD_PRELOAD was taken from it, it runs as another user or in a container without "
         "AON, or another aon-run below it wrote a directory of its own";
}

/// Why there are ranks and no call of any; empty where it is known otherwise, or was wanted so.
std::string why_no_calls(const Json& ledger, const Totals& totals) {
  if (totals.emitted != 0) return {};
  for (const char* part : {"ranks", "nodes"}) {
    for (const Json& entry : member(ledger, part)) {
      const Json& mpi = member(member(entry, "providers"), "mpi");
      const bool is_known =
          part == std::string_view("ranks") || is_unwanted(text_of(mpi, "reason"));
      if (mpi.is_object() && is_known) return {};
    }
  }
  return why_nothing(ledger);
}

/// A provider that is not fully on, and what it says of it. Not one that the user left out himself.
using Shortfall = std::tuple<std::string, std::string, std::string, std::string>;

std::vector<Shortfall> shortfalls(const Json& providers) {
  std::vector<Shortfall> result;
  if (!providers.is_object()) return result;
  for (const auto& [name, said] : providers.items()) {
    const std::string state = text_of(said, "state");
    const std::string reason = text_of(said, "reason");
    if (state == "on" || state.empty()) continue;
    if (is_unwanted(reason)) continue;
    result.emplace_back(name, state, reason, text_of(said, "remedy"));
  }
  return result;
}

std::string provider_line(const Shortfall& shortfall, const std::string& where) {
  const auto& [name, state, reason, remedy] = shortfall;
  std::string line = fmt::format("{} {} on {}", name, state, where);
  if (!reason.empty()) line += ": " + reason;
  if (!remedy.empty()) line += " (" + remedy + ")";
  if (line.size() > kMaxProviderLineBytes) {
    line.resize(kMaxProviderLineBytes - strlen(kCut));
    line += kCut;
  }
  return line;
}

/// Launchers and wrappers that were followed beside processes that recorded have nothing to record.
bool is_said_of(const std::string& provider, const Json& process, bool has_records) {
  if (provider != "mpi" && provider != "recording" && provider != "counters") return true;
  return !has_records || !process.contains("followed_since") || member(process, "rank").is_number();
}

/// Wrong settings and processes without an agent come first, then what the trace itself lacks, then
/// what its counters lack; most nodes have no GPU.
int place_of(const std::string& provider) {
  if (provider == "options" || provider == "memory") return -1;
  if (provider == "nvml") return 2;
  for (const char* name : {"energy", "membw", "network", "node", "perf", "process"}) {
    if (provider == name) return 1;
  }
  return 0;
}

}  // namespace

double job_seconds(const Json& ledger) {
  const Json& job = member(ledger, "job");
  return seconds_between(text_of(job, "start"), text_of(job, "end"));
}

Result<Json> read_ledger(const std::string& dir) {
  const std::string path = dir + "/aon.json";
  if (const Status part = find_part(dir, "aon.json"); !part) {
    return part.error().code != Code::kNotFound
               ? part.error()
               : Error{Code::kNotFound, part.error().message +
                                            "; if the job is over, run: " + "aon finalize " + dir};
  }
  const Result<std::string> text = read_text_file(path, kMaxLedgerBytes);
  if (!text) return text.error();
  Json ledger = Json::parse(*text, nullptr, false);
  if (ledger.is_discarded() || !ledger.is_object())
    return Error{Code::kDamaged, path + " is damaged; run: aon finalize " + dir};
  return ledger;
}

std::vector<std::string> provider_lines(const Json& ledger) {
  std::map<Shortfall, uint64_t> ranks_of;
  std::set<std::pair<std::string, std::string>> reasons;  ///< name and reason
  const bool has_records = totals_of(ledger).emitted != 0;
  for (const Json& rank : member(ledger, "ranks")) {
    for (Shortfall& shortfall : shortfalls(member(rank, "providers"))) {
      if (!is_said_of(std::get<0>(shortfall), rank, has_records)) continue;
      reasons.emplace(std::get<0>(shortfall), std::get<2>(shortfall));
      ++ranks_of[std::move(shortfall)];
    }
  }
  std::multimap<int, std::string> ordered;
  const auto add = [&](const Shortfall& shortfall, const std::string& where) {
    ordered.emplace(place_of(std::get<0>(shortfall)), provider_line(shortfall, where));
  };
  for (const auto& [shortfall, count] : ranks_of)
    add(shortfall, fmt::format("{} process{}", count, count == 1 ? "" : "es"));
  std::map<Shortfall, std::set<std::string>> nodes_of;  ///< one may have had several agents
  for (const Json& node : member(ledger, "nodes")) {
    for (Shortfall& shortfall : shortfalls(member(node, "providers"))) {
      if (reasons.count({std::get<0>(shortfall), std::get<2>(shortfall)}) == 0)
        nodes_of[std::move(shortfall)].insert(text_of(node, "node"));
    }
  }
  for (const auto& [shortfall, nodes] : nodes_of) {
    add(shortfall,
        nodes.size() == 1 ? "node " + *nodes.begin() : fmt::format("{} nodes", nodes.size()));
  }
  std::vector<std::string> lines;
  for (auto& [place, line] : ordered) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> summary_lines(const Json& ledger, const std::string& dir) {
  const Totals totals = totals_of(ledger);
  std::vector<std::string> lines{fmt::format("{}: {}", printable(dir), file_list(dir))};
  if (totals.rank_count + totals.other_count == 0) {
    lines.push_back("nothing was recorded: " + why_nothing(ledger));
    return lines;
  }
  size_t warning_count = 0;
  for (const Json& warning : member(member(ledger, "assembly"), "warnings")) {
    if (warning.is_string() && warning_count++ < kMaxShownWarnings)
      lines.push_back("warning: " + warning.get<std::string>());
  }
  lines.push_back(rank_line(ledger, totals));
  lines.push_back(record_line(ledger, totals));
  if (const std::string why = why_no_calls(ledger, totals); !why.empty())
    lines.push_back("no call was recorded: " + why);
  if (const std::string line = overhead_line(ledger); !line.empty()) lines.push_back(line);
  if (const std::string line = energy_line(ledger); !line.empty()) lines.push_back(line);
  if (const std::string line = incomplete_line(ledger); !line.empty()) lines.push_back(line);
  size_t finding_count = 0;
  for (const Json& finding : member(ledger, "findings")) {
    if (finding.is_string() && finding_count++ < kMaxShownFindings)
      lines.push_back(finding.get<std::string>());
  }
  for (const char* what : {"left_out_of_tables", "metrics_left_out"}) {
    for (const Json& line : member(member(ledger, "assembly"), what)) {
      if (line.is_string()) lines.push_back(line.get<std::string>());
    }
  }
  for (const std::string& line : provider_lines(ledger)) {
    if (lines.size() < kMaxSummaryLines) lines.push_back("not collected: " + line);
  }
  if (lines.size() > kMaxSummaryLines) lines.resize(kMaxSummaryLines);
  return lines;
}

std::string summary_of(const std::string& dir) {
  std::string text;
  if (const Result<nlohmann::json> ledger = read_ledger(dir)) {
    for (const std::string& line : summary_lines(*ledger, dir))
      text += "aon: " + printable(line) + "\n";
  }
  return text;
}

Status leave_summary(const std::string& dir, const std::string& text) {
  const std::string path = dir + "/summary.txt";
  const Result<std::string> there = read_text_file(path);
  if (there && *there == text && !text.empty()) return {};
  // Of a killed one, the next assembly removes it.
  const std::string fresh = fmt::format("{}/.assemble-summary-{}", dir, getpid());
  unlink(fresh.c_str());
  const auto left = [&]() -> Status {
    if (text.empty()) return Error{Code::kNotFound, "the ledger of " + dir + " cannot be read"};
    auto file = open_file(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (!file) return file.error();
    if (Status status = write_all(file->get(), text.data(), text.size()); !status) return status;
    // A file system of a network may say only here that there is no room.
    if (close(file->release()) != 0) return errno_error("cannot write", fresh, errno);
    if (rename(fresh.c_str(), path.c_str()) != 0) return errno_error("cannot write", path, errno);
    return {};
  };
  Status status = left();
  if (status) return status;
  unlink(fresh.c_str());
  unlink(path.c_str());  // it is of another archive
  return status;
}

}  // namespace aon::tools
