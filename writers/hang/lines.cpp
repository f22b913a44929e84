// What hangs, in sentences: the collectives that do not end, who is in them, who is not and what it
// does instead, then the other calls that do not return.

#include <aon/ring.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "writers/hang/hang.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxAbsent = 16;  ///< named with what they do; the others are listed
constexpr size_t kMaxOthers = 32;

class Text {
 public:
  Text(const Model& model, const HangReport& report, uint64_t now_ns)
      : model_(model), report_(report), now_ns_(now_ns) {}

  /// "rank 2 on n1 (pid 7) did not arrive" and who waited for it.
  std::string finding(const Hang& hang) const {
    std::vector<uint32_t> arrived;
    for (const uint32_t i : hang.arrived) arrived.push_back(model_.open_calls[i].group);
    std::string text = fmt::format("{} of {} never ended: rank {} waited",
                                   region(model_.open_calls[hang.arrived[0]]),
                                   model_.communicators[hang.communicator].name, list(arrived));
    if (hang.is_mismatch) return text + ", in different calls";
    if (hang.absent.empty()) return text;
    text += fmt::format(", {} {}", who(hang.absent[0]), absent_text(hang));
    if (hang.absent.size() > 1) text += fmt::format(" and {} more", hang.absent.size() - 1);
    return text;
  }

  std::vector<std::string> lines() {
    for (const Hang& hang : report_.hangs) add(hang);
    add_others();
    return std::move(lines_);
  }

 private:
  std::string for_seconds(uint64_t since_ns) const {
    const uint64_t passed_ns = now_ns_ - std::min(since_ns, now_ns_);
    return fmt::format("{:.0f} s", static_cast<double>(passed_ns) * 1e-9);
  }
  std::string region(const OpenCall& call) const {
    return call.region < model_.regions.size() ? model_.regions[call.region].name : "a call";
  }
  std::string who(uint32_t group) const {
    const Group& one = model_.groups[group];
    std::string text = one.rank ? fmt::format("rank {}", *one.rank) : one.name;
    if (one.process == nullptr) return text;
    return text +
           fmt::format(" on {} (pid {})", model_.job->nodes[one.node].host, one.process->start.pid);
  }

  /// "0-2, 5": ranks, or the names of processes without one.
  std::string list(std::vector<uint32_t> groups) const {
    std::sort(groups.begin(), groups.end());
    std::string text;
    for (size_t i = 0; i < groups.size();) {
      size_t last = i;
      const auto is_rank = [&](size_t at) { return model_.groups[groups[at]].rank.has_value(); };
      while (is_rank(i) && last + 1 < groups.size() && is_rank(last + 1) &&
             groups[last + 1] == groups[last] + 1) {
        ++last;
      }
      if (!text.empty()) text += ", ";
      text += is_rank(i) ? fmt::format("{}", groups[i]) : model_.groups[groups[i]].name;
      if (last != i) text += fmt::format("-{}", groups[last]);
      i = last + 1;
    }
    return text;
  }

  std::string call_text(const OpenCall& call) const {
    std::string text = region(call);
    if (call.peer >= 0) text += fmt::format(" with rank {}", call.peer);
    if (call.peer == kAnyPeer) text += " from any rank";
    if (call.communicator)
      text += fmt::format(" of {}", model_.communicators[*call.communicator].name);
    if (call.slot != kMainThreadSlot) text += fmt::format(" (thread {})", call.tid);
    return text;
  }

  static const char* absent_text(const Hang& hang) {
    return hang.number ? "did not arrive" : "is not in it";
  }

  /// What a process does that did not arrive.
  std::string instead(uint32_t group) const {
    const Group& one = model_.groups[group];
    std::string end;
    if (one.process != nullptr && one.process->exit) {
      const ProcessExitDefinition& exit = *one.process->exit;
      end = exit.signal != 0      ? fmt::format("; it was ended by signal {}", exit.signal)
            : exit.exit_code >= 0 ? fmt::format("; it has ended with code {}", exit.exit_code)
                                  : "; it has ended";
    }
    for (const uint32_t i : report_.open_calls) {
      const OpenCall& call = model_.open_calls[i];
      if (call.group != group) continue;
      return fmt::format("it is in {} for {}", call_text(call), for_seconds(call.start_ns)) + end;
    }
    if (report_.last_ns[group] == 0) return "it has recorded nothing" + end;
    return fmt::format("its last call was over {} ago", for_seconds(report_.last_ns[group])) + end;
  }

  void add(const Hang& hang) {
    const GlobalCommunicator& communicator = model_.communicators[hang.communicator];
    const std::string number =
        hang.number ? fmt::format("collective {}", *hang.number + 1) : "a collective";
    lines_.push_back(fmt::format("{} of {} ({} members) does not end, for {}", number,
                                 communicator.name, communicator.members.size(),
                                 for_seconds(hang.since_ns)));
    for (size_t i = 0; i < hang.arrived.size();) {
      const OpenCall& first = model_.open_calls[hang.arrived[i]];
      std::vector<uint32_t> groups;
      for (; i < hang.arrived.size(); ++i) {
        const OpenCall& call = model_.open_calls[hang.arrived[i]];
        if (call.region != first.region) break;
        groups.push_back(call.group);
        told_.insert(hang.arrived[i]);
      }
      lines_.push_back(fmt::format("  in {}: {}", region(first), list(groups)));
    }
    if (hang.is_mismatch) lines_.push_back("  they are in different calls: one of them is wrong");
    for (size_t i = 0; i < std::min(hang.absent.size(), kMaxAbsent); ++i) {
      const uint32_t group = hang.absent[i];
      lines_.push_back(fmt::format("  {} {}: {}", who(group), absent_text(hang), instead(group)));
    }
    if (hang.absent.size() > kMaxAbsent) {
      lines_.push_back(
          fmt::format("  not there are, in all {}: {}", hang.absent.size(), list(hang.absent)));
    }
    if (!hang.passed.empty())
      lines_.push_back(fmt::format("  have left it: {}", list(hang.passed)));
    if (hang.unknown_count != 0)
      lines_.push_back(
          fmt::format("  of {} members it is not known: their records have holes or are not here",
                      hang.unknown_count));
  }

  void add_others() {
    size_t count = 0;
    for (const uint32_t i : report_.open_calls) {
      if (told_.count(i) != 0 || ++count > kMaxOthers) continue;
      const OpenCall& call = model_.open_calls[i];
      lines_.push_back(fmt::format("{} is in {} for {}", who(call.group), call_text(call),
                                   for_seconds(call.start_ns)));
    }
    if (count > kMaxOthers)
      lines_.push_back(fmt::format("and {} more calls do not return", count - kMaxOthers));
  }

  const Model& model_;
  const HangReport& report_;
  uint64_t now_ns_;
  std::set<uint32_t> told_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string hang_finding(const Model& model, const HangReport& report) {
  if (report.hangs.empty()) return {};
  const auto named = std::find_if(report.hangs.begin(), report.hangs.end(),
                                  [](const Hang& hang) { return !hang.absent.empty(); });
  const Hang& hang = named == report.hangs.end() ? report.hangs.front() : *named;
  return Text(model, report, model.end_ns).finding(hang);
}

std::vector<std::string> hang_lines(const Model& model, const HangReport& report, uint64_t now_ns) {
  return Text(model, report, now_ns).lines();
}

}  // namespace aon::writers
