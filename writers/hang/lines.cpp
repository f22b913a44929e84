// What hangs, in sentences: the collectives that do not end, who is in them, who is not and what it
// does instead, then the other calls that do not return.

#include <aon/ring.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "writers/hang/hang.h"
#include "writers/hang/text.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxAbsent = 16;  ///< named with what they do; the others are listed
constexpr size_t kMaxOthers = 32;
constexpr size_t kMaxToldHangs = 64;  ///< of all communicators: a job may have one of each node

bool names_somebody(const Hang* hang) { return !hang->absent.empty() || hang->is_mismatch; }

/// As they are told: where there are too many, first those that say who is to blame, then by age.
std::vector<const Hang*> in_order(const std::vector<Hang>& hangs) {
  std::vector<const Hang*> order;
  order.reserve(hangs.size());
  for (const Hang& hang : hangs) order.push_back(&hang);
  if (order.size() <= kMaxToldHangs) return order;
  std::stable_sort(order.begin(), order.end(), [](const Hang* a, const Hang* b) {
    return std::pair(!names_somebody(a), a->since_ns) < std::pair(!names_somebody(b), b->since_ns);
  });
  return order;
}

class Text : private HangText {
 public:
  Text(const Model& model, const HangReport& report, uint64_t now_ns)
      : HangText(model, report.last_ns, now_ns),
        model_(model),
        report_(report),
        now_ns_of_job_(now_ns) {
    for (const uint32_t i : report.open_calls) {
      const OpenCall& call = model.open_calls[i];
      note_call(call.group, call.tid, call.start_ns);
    }
  }

  /// "rank 2 on n1 (pid 7) did not arrive" and who waited for it.
  std::string finding(const Hang& hang) const {
    std::vector<uint32_t> arrived;
    for (const Arrival& arrival : hang.arrived)
      arrived.push_back(model_.open_calls[arrival.call].group);
    std::string text =
        fmt::format("{} of {} never ended: rank {} waited", collective(hang, hang.arrived[0]),
                    model_.communicators[hang.communicator].name, list(arrived));
    if (hang.is_mismatch) return text + ", in different calls";
    if (hang.absent.empty()) return text;
    text += fmt::format(", {} {}", who(hang.absent[0]), absent_text(hang));
    const bool is_one = hang.absent.size() == 1;
    if (!is_one) text += fmt::format(" and {} more", hang.absent.size() - 1);
    if (const OpenCall* call = open_call(hang.absent[0]))
      text += fmt::format("{} in {}", is_one ? " but was" : "; the first was", call_text(*call));
    return text;
  }

  std::vector<std::string> lines() {
    const std::vector<const Hang*> hangs = in_order(report_.hangs);
    const size_t told_count = std::min(hangs.size(), kMaxToldHangs);
    for (size_t i = 0; i < told_count; ++i) add(*hangs[i]);
    if (const size_t more = hangs.size() - told_count; more != 0)
      lines_.push_back(fmt::format("and {} more collectives do not end", more));
    for (size_t i = told_count; i < hangs.size(); ++i) {
      for (const Arrival& arrival : hangs[i]->arrived) told_.insert(arrival.call);
    }
    append(nccl_hang_lines(model_, report_, now_ns_of_job_));
    add_others();
    return std::move(lines_);
  }

 private:
  std::string region(const OpenCall& call) const {
    return call.region < model_.regions.size() ? model_.regions[call.region].name : "a call";
  }
  /// What of a persistent one was said when it was made is not in the trace of its starts.
  std::string collective(const Hang& hang, const Arrival& arrival) const {
    if (hang.instance != 0) return "a persistent collective";
    return arrival.region < model_.regions.size() ? model_.regions[arrival.region].name : "a call";
  }
  static std::string number(const Hang& hang) {
    if (hang.number) return fmt::format("collective {}", *hang.number + 1);
    if (hang.instance == 0) return "a collective";
    return fmt::format("start {} of persistent collective {}", hang.instance & UINT32_MAX,
                       hang.instance >> 32);
  }
  std::string call_text(const OpenCall& call) const {
    std::string text = region(call) + partner_text(call);
    if (call.communicator)
      text += fmt::format(" of {}", model_.communicators[*call.communicator].name);
    if (call.slot != kMainThreadSlot) text += fmt::format(" (thread {})", call.tid);
    return text;
  }

  static const char* absent_text(const Hang& hang) {
    return hang.number || hang.instance != 0 ? "did not arrive" : "is not in it";
  }

  /// The first one of the process that does not return; nullptr: none.
  const OpenCall* open_call(uint32_t group) const {
    for (const uint32_t i : report_.open_calls) {
      if (model_.open_calls[i].group == group) return &model_.open_calls[i];
    }
    return nullptr;
  }

  /// What a process does that did not arrive.
  std::string instead(uint32_t group) const {
    const std::string end = end_text(group);
    if (const OpenCall* call = open_call(group))
      return fmt::format("it is in {} for {}", call_text(*call), for_seconds(call->start_ns)) + end;
    return last_call(group) + end;
  }

  void add(const Hang& hang) {
    const GlobalCommunicator& communicator = model_.communicators[hang.communicator];
    lines_.push_back(fmt::format("{} of {} ({} members) does not end, for {}", number(hang),
                                 communicator.name, communicator.members.size(),
                                 for_seconds(hang.since_ns)));
    for (size_t i = 0; i < hang.arrived.size();) {
      const Arrival& first = hang.arrived[i];
      const OpenCall& first_call = model_.open_calls[first.call];
      std::vector<uint32_t> groups;
      std::vector<std::pair<uint32_t, int32_t>> threads;
      for (; i < hang.arrived.size(); ++i) {
        const OpenCall& call = model_.open_calls[hang.arrived[i].call];
        if (hang.arrived[i].region != first.region || call.region != first_call.region) break;
        groups.push_back(call.group);
        threads.emplace_back(call.group, call.tid);
        told_.insert(hang.arrived[i].call);
      }
      std::string in = region(first_call);
      if (hang.instance == 0 && first.region != first_call.region)
        in += " of " + collective(hang, first);
      lines_.push_back(fmt::format("  in {}: {}", in, list(groups)));
      append(stacks(threads));
    }
    if (hang.is_mismatch) lines_.push_back("  they are in different calls: one of them is wrong");
    for (size_t i = 0; i < std::min(hang.absent.size(), kMaxAbsent); ++i) {
      const uint32_t group = hang.absent[i];
      lines_.push_back(fmt::format("  {} {}: {}", who(group), absent_text(hang), instead(group)));
      append(stacks(std::span(&group, 1)));
    }
    if (hang.absent.size() > kMaxAbsent) {
      lines_.push_back(
          fmt::format("  not there are, in all {}: {}", hang.absent.size(), list(hang.absent)));
    }
    if (!hang.started.empty())
      lines_.push_back(
          fmt::format("  have started it and do not wait for it: {}", list(hang.started)));
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
      lines_.push_back(fmt::format("{} is in {} for {}{}", who(call.group), call_text(call),
                                   for_seconds(call.start_ns), awaited_text(i)));
      const std::pair thread(call.group, call.tid);
      append(stacks(std::span(&thread, 1)));
    }
    if (count > kMaxOthers)
      lines_.push_back(fmt::format("and {} more calls do not return", count - kMaxOthers));
  }

  std::string awaited_text(uint32_t call) const {
    const auto found = report_.awaited.find(call);
    if (found == report_.awaited.end()) return {};
    const Awaited& awaited = found->second;
    return awaited.size() == 1
               ? fmt::format(", rank {} has not sent to it", list(awaited))
               : fmt::format(", one or more of rank {} have not sent to it", list(awaited));
  }

  void append(std::vector<std::string> lines) {
    for (std::string& line : lines) lines_.push_back(std::move(line));
  }

  const Model& model_;
  const HangReport& report_;
  uint64_t now_ns_of_job_;
  std::set<uint32_t> told_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string hang_finding(const Model& model, const HangReport& report) {
  if (report.hangs.empty()) {
    std::string text = nccl_hang_finding(model, report);
    if (text.empty()) text = stuck_finding(model, report, false);
    return text.empty() ? nccl_quiet_finding(model, report) : text;
  }
  const std::vector<const Hang*> hangs = in_order(report.hangs);
  const auto named = std::find_if(hangs.begin(), hangs.end(), names_somebody);
  if (named == hangs.end()) {
    // Who is in a collective that the others have left may be who they wait for.
    std::string stuck = stuck_finding(model, report, true);
    if (!stuck.empty()) return stuck;
  }
  const Hang* hang = named == hangs.end() ? hangs.front() : *named;
  return Text(model, report, model.end_ns).finding(*hang);
}

std::vector<std::string> hang_lines(const Model& model, const HangReport& report, uint64_t now_ns) {
  return Text(model, report, now_ns).lines();
}

}  // namespace aon::writers
