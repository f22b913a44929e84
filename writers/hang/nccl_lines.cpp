// What hangs of NCCL, in sentences: the operations that do not end, who is in them, who is not and
// where that stands.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/digits.h"
#include "writers/hang/hang.h"
#include "writers/hang/nccl_text.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxAbsent = 16;  ///< named with what they do; the others are listed
constexpr size_t kMaxCamps = 16;   ///< of members that called something else, in lines
constexpr size_t kFindingCamps = 4;

class NcclText : private NcclWords {
 public:
  NcclText(const Model& model, const HangReport& report, uint64_t now_ns)
      : NcclWords(model, report, now_ns) {}

  std::string finding(const NcclHang& hang) {
    note_members(hang);
    std::string text = came_text(hang);
    if (hang.differs) return text + ", with bytes, types or roots that differ";
    if (hang.other_end) return text + ", " + unlike_text(hang);
    if (is_lone_end(hang))
      return text + fmt::format(", {} {}", who(hang.absent[0]), lone_text(hang));
    if (!hang.wrong.empty()) return text + instead_finding(hang);
    if (hang.absent.empty())
      return hang.passed.empty() ? text : text + fmt::format(", {} beyond it", are(hang.passed));
    const std::vector<NcclMember> missing = missing_of(hang);
    if (missing.empty() && !hang.held.empty()) return text + held_finding(hang);
    if (hang.is_extra || missing.empty()) {
      text += fmt::format(", {} {} went on without it", hang.went_on.size(),
                          hang.went_on.size() == 1 ? "other" : "others");
      return missing.empty() ? text : text + fmt::format(", {} did not arrive", missing.size());
    }
    text += fmt::format(", {} did not arrive", who(missing[0]));
    if (missing.size() > 1) text += fmt::format(" and {} more", missing.size() - 1);
    return text;
  }

  /// "ranks 0-2 are quiet for 20 s behind ncclAllReduce 2 of world; all have enqueued it"
  std::string quiet_text(const NcclHang& hang) {
    note_members(hang);
    const size_t unknown = hang.absent.size() + hang.unknown_count + hang.unlike_count;
    const Came came = split(hang);
    std::string text = came_text(hang);
    if (!came.here.empty()) text += fmt::format(", for {}", for_seconds(hang.since_ns));
    if (unknown == 0)
      return text + (is_transfer(hang) ? "; the other end is enqueued" : "; all have enqueued it");
    return text + (is_transfer(hang) ? "; of the other end it is not known"
                                     : fmt::format("; of {} members it is not known", unknown));
  }
  std::vector<std::string> quiet_lines(const NcclHang& hang) {
    add(quiet_text(hang) +
        "; at level api NCCL does not tell whether it has ended (AON_NCCL_LEVEL=gpu does)");
    append(stacks_of(split(hang).here));
    return std::move(lines_);
  }

  /// Whether a process ended in it while others were still there.
  bool has_ended(const NcclHang& hang) const { return !split(hang).ended.empty(); }

  std::string finding(const NcclDisagreement& disagreement) {
    note_members(disagreement);
    std::string text = fmt::format("collective {} of {} is not the same everywhere",
                                   disagreement.number + 1, name_of(disagreement.communicator));
    const size_t told = std::min(disagreement.camps.size(), kFindingCamps);
    for (size_t i = 0; i < told; ++i) {
      const auto& camp = disagreement.camps[i];
      text += fmt::format("{}rank {} called {}", i == 0 ? ": " : ", ", list_of(camp.members),
                          shape_text(camp.shape));
    }
    if (disagreement.camps.size() > told)
      text += fmt::format(", and others in {} more ways", disagreement.camps.size() - told);
    return text;
  }

  std::vector<std::string> lines(const NcclDisagreement& disagreement) {
    note_members(disagreement);
    add(fmt::format("collective {} of {}: its members called it differently, one of them is wrong",
                    disagreement.number + 1, name_of(disagreement.communicator)));
    const size_t told = std::min(disagreement.camps.size(), kMaxCamps);
    for (size_t i = 0; i < told; ++i) {
      const auto& camp = disagreement.camps[i];
      add(fmt::format("  {}: {}", shape_text(camp.shape), list_of(camp.members)));
      append(stacks_of(camp.members));
    }
    if (disagreement.camps.size() > told)
      add(fmt::format("  and others in {} more ways", disagreement.camps.size() - told));
    return std::move(lines_);
  }

  std::vector<std::string> lines(const NcclHang& hang) {
    note_members(hang);
    add_head(hang);
    add_arrived(hang);
    if (hang.differs) add_differences(hang);
    if (hang.other_end) add(fmt::format("  {}: one of them is wrong", unlike_text(hang)));
    add_absent(hang);
    add_called(hang);
    if (!hang.passed.empty()) add(fmt::format("  are beyond it: {}", list_of(hang.passed)));
    if (hang.unknown_count != 0)
      add(fmt::format("  of {} members it is not known: their records have holes or are not here",
                      hang.unknown_count));
    if (hang.unlike_count != 0)
      add(
          fmt::format("  of {} members it is not known: NCCL may count what graphs launch "
                      "otherwise for them: captured at another level, or it is not known how",
                      hang.unlike_count));
    return std::move(lines_);
  }

 private:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  void append(std::vector<std::string> lines) {
    for (std::string& line : lines) add(std::move(line));
  }
  static const char* instead_text(const NcclHang& hang) {
    if (hang.wrong.empty()) return hang.is_extra ? " and went on without it" : "";
    return hang.wrong.size() == hang.absent.size() ? ", but to another one"
                                                   : ", of these some to another one";
  }
  void add_arrived(const NcclHang& hang) {
    const Came came = split(hang);
    const char* are_in_it = hang.is_enqueued_only ? "have enqueued it" : "in it";
    if (!came.here.empty()) add(fmt::format("  {}: {}", are_in_it, list_of(came.here)));
    append(stacks_of(came.here));
    for (size_t i = 0; i < std::min(came.ended.size(), kMaxAbsent); ++i) {
      const NcclPart& part = came.ended[i];
      add(fmt::format("  {} {}{}", who(part),
                      hang.is_enqueued_only ? "had enqueued it" : "was in it",
                      end_text(part.group)));
    }
    if (came.ended.size() > kMaxAbsent)
      add(fmt::format("  ended in it are, in all {}: {}", came.ended.size(), list_of(came.ended)));
  }
  /// Those that have called it and are not beyond it, by what they are in.
  void add_called(const NcclHang& hang) {
    std::map<std::string, std::vector<NcclPart>> by_text;
    for (const NcclPart& part : hang.called) {
      const bool is_other_end = is_transfer(hang) && part.region != hang.region &&
                                part.operation.sequence == hang.sequence &&
                                part.operation.peer == static_cast<int32_t>(hang.arrived[0].rank);
      by_text[is_other_end
                  ? "in the other end"
                  : fmt::format("{}, and are still in {}",
                                is_transfer(hang) ? "have called the other end" : "have called it",
                                part_text(part))]
          .push_back(part);
    }
    size_t count = 0;
    for (const auto& [text, parts] : by_text) {
      if (++count > kMaxCamps) {
        add(fmt::format("  and {} other ones", by_text.size() - kMaxCamps));
        break;
      }
      add(fmt::format("  {}: {}", text, list_of(parts)));
      append(stacks_of(parts));
    }
  }
  std::string held_finding(const NcclHang& hang) const {
    const NcclPart& held = hang.held.front();
    std::string text = fmt::format(", {} is still in {} {}", who(held), region_name(held.region),
                                   held.operation.sequence + 1);
    if (hang.held.size() > 1)
      text += fmt::format(", and {} more in earlier ones", hang.held.size() - 1);
    return text;
  }

  /// Who is in another operation, how many others are, and how many came to none.
  std::string instead_finding(const NcclHang& hang) const {
    const NcclPart& wrong = hang.wrong.front();
    std::string text =
        fmt::format(", {} {} {} instead", who(wrong), is_in(hang), region_name(wrong.region));
    const size_t more = hang.wrong.size() - 1;
    if (more != 0)
      text += fmt::format(", and {} more {} in another one", more, more == 1 ? "is" : "are");
    const size_t missing = missing_of(hang).size();
    if (missing != 0) text += fmt::format(", and {} more did not arrive", missing);
    return text;
  }
  static const NcclPart* part_of(const std::vector<NcclPart>& parts, const NcclMember& member) {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const NcclPart& part) {
      return part.group == member.group && part.rank == member.rank;
    });
    return found == parts.end() ? nullptr : &*found;
  }
  static bool went_on(const NcclHang& hang, const NcclMember& member) {
    return std::find(hang.went_on.begin(), hang.went_on.end(), member) != hang.went_on.end();
  }
  /// The absent ones that came to nothing else.
  static std::vector<NcclMember> missing_of(const NcclHang& hang) {
    std::vector<NcclMember> missing;
    for (const NcclMember& member : hang.absent) {
      if (part_of(hang.wrong, member) == nullptr && part_of(hang.held, member) == nullptr &&
          !went_on(hang, member))
        missing.push_back(member);
    }
    return missing;
  }
  /// A transfer at level api whose other end did not come to it.
  bool is_lone_end(const NcclHang& hang) const {
    return hang.is_enqueued_only && is_transfer(hang) && !hang.absent.empty();
  }
  /// What the other end has not done.
  std::string lone_text(const NcclHang& hang) const {
    return is_send(hang) ? "has not enqueued ncclRecv from it" : "has not enqueued ncclSend to it";
  }
  static const char* is_in(const NcclHang& hang) {
    return hang.is_enqueued_only ? "has enqueued" : "is in";
  }
  /// "rank 1 on n1 (pid 101) has called ncclRecv with 128 bytes, not 64"
  std::string unlike_text(const NcclHang& hang) const {
    const NcclPart& other = *hang.other_end;
    return fmt::format("{} has called {} with {} bytes, not {}", who(other),
                       region_name(other.region), grouped(other.operation.bytes),
                       grouped(hang.arrived.front().operation.bytes));
  }
  void add_head(const NcclHang& hang) {
    if (hang.is_enqueued_only && is_transfer(hang)) {
      const char* what =
          hang.other_end ? "the other end differs" : "it has not come to the other end";
      add(
          fmt::format("{}: {}, and who waits is quiet for {}; at level api NCCL does not tell what "
                      "has ended (AON_NCCL_LEVEL=gpu does)",
                      operation(hang), what, for_seconds(hang.since_ns)));
      return;
    }
    if (hang.is_enqueued_only) {
      add(fmt::format(
          "{}: some have not come to it{}, and others are quiet for {}; at level api NCCL "
          "does not tell what has ended (AON_NCCL_LEVEL=gpu does)",
          operation(hang), instead_text(hang), for_seconds(hang.since_ns)));
      return;
    }
    const NcclPart& first = hang.arrived.front();
    const std::string with =
        is_transfer(hang)
            ? fmt::format("between ranks {} and {} of it", first.rank, first.operation.peer)
            : fmt::format("{} members", model_.communicators[hang.communicator].rank_count);
    add(fmt::format("{} ({}, {} bytes) does not end, for {}", operation(hang), with,
                    grouped(first.operation.bytes), for_seconds(hang.since_ns)));
  }

  void add_differences(const NcclHang& hang) {
    add("  their bytes, types or roots differ: one of them is wrong");
    std::map<NcclShape, std::vector<NcclPart>> by_shape;
    for (const NcclPart& part : hang.arrived) {
      const int32_t root = is_transfer(hang) ? kNoPeer : part.operation.peer;
      by_shape[{hang.region, root, part.operation.type, part.operation.bytes}].push_back(part);
    }
    size_t count = 0;
    for (const auto& [shape, parts] : by_shape) {
      if (++count > kMaxCamps) {
        add(fmt::format("    and {} other ones", by_shape.size() - kMaxCamps));
        break;
      }
      const std::string root =
          shape.root == kNoPeer ? "" : fmt::format(" with root {}", shape.root);
      add(fmt::format("    {} bytes{}{}: {}", grouped(shape.bytes), type_text(shape.type), root,
                      list_of(parts)));
    }
  }

  void add_absent(const NcclHang& hang) {
    for (size_t i = 0; i < std::min(hang.absent.size(), kMaxAbsent); ++i) {
      const NcclMember& member = hang.absent[i];
      if (const NcclPart* wrong = part_of(hang.wrong, member)) {
        add(fmt::format("  {} {} {} instead: one of them is wrong", who(member), is_in(hang),
                        part_text(*wrong)));
        append(stacks_of(std::vector{*wrong}));
        continue;
      }
      const NcclPart* held = part_of(hang.held, member);
      add(fmt::format(
          "  {} {}: {}{}", who(member),
          held != nullptr ? "is still in " + part_text(*held) : absent_text(hang, member),
          last_call(member.group), end_text(member.group)));
      append(held != nullptr ? stacks_of(std::vector{*held}) : stacks_of(std::vector{member}));
    }
    if (hang.absent.size() > kMaxAbsent)
      add(fmt::format("  not there are, in all {}: {}", hang.absent.size(), list_of(hang.absent)));
  }
  std::string absent_text(const NcclHang& hang, const NcclMember& member) const {
    if (is_lone_end(hang)) return lone_text(hang);
    if (went_on(hang, member)) return "went on without it";
    return hang.is_extra ? "has not enqueued it" : "did not arrive";
  }

  std::vector<std::string> lines_;
};

/// The one that `part` is in.
const NcclHang* hang_of(const NcclPart& part, const std::vector<NcclHang>& hangs) {
  const auto is_it = [&](const NcclPart& one) {
    return one.group == part.group && one.rank == part.rank &&
           one.communicator == part.communicator && one.region == part.region &&
           one.operation.call == part.operation.call;
  };
  const auto found = std::find_if(hangs.begin(), hangs.end(), [&](const NcclHang& hang) {
    return !hang.is_enqueued_only && std::any_of(hang.arrived.begin(), hang.arrived.end(), is_it);
  });
  return found == hangs.end() ? nullptr : &*found;
}

/// All who did not come are held in other ones.
bool is_held(const NcclHang& hang) {
  return !hang.absent.empty() && hang.held.size() == hang.absent.size();
}

/// What those are held in who did not come, if they are in a hang that is told, and so on; of those
/// that wait for each other it is `first`.
const NcclHang& root_of(const NcclHang& first, const std::vector<NcclHang>& hangs) {
  std::set<const NcclHang*> seen;
  const NcclHang* hang = &first;
  while (is_held(*hang)) {
    if (!seen.insert(hang).second) return first;
    const NcclHang* next = hang_of(hang->held.front(), hangs);
    if (next == nullptr) break;
    hang = next;
  }
  return *hang;
}

}  // namespace

std::vector<std::string> nccl_hang_lines(const Model& model, const HangReport& report,
                                         uint64_t now_ns) {
  std::vector<std::string> lines;
  for (const NcclHang& hang : report.nccl) {
    for (std::string& line : NcclText(model, report, now_ns).lines(hang))
      lines.push_back(std::move(line));
  }
  for (const NcclDisagreement& one : report.nccl_disagreements) {
    for (std::string& line : NcclText(model, report, now_ns).lines(one))
      lines.push_back(std::move(line));
  }
  for (const NcclHang& hang : report.nccl_quiet) {
    for (std::string& line : NcclText(model, report, now_ns).quiet_lines(hang))
      lines.push_back(std::move(line));
  }
  if (report.nccl_quiet_left_out_count != 0)
    lines.push_back(fmt::format("and processes are quiet behind {} more operations of NCCL",
                                grouped(report.nccl_quiet_left_out_count)));
  if (report.nccl_left_out_count != 0)
    lines.push_back(fmt::format("and {} more operations of NCCL do not end",
                                grouped(report.nccl_left_out_count)));
  return lines;
}

std::string nccl_hang_finding(const Model& model, const HangReport& report) {
  NcclText text(model, report, model.end_ns);
  // Who called something else explains why others do not come to an end.
  if (!report.nccl_disagreements.empty()) return text.finding(report.nccl_disagreements.front());
  if (report.nccl.empty()) return {};
  std::set<uint32_t> waiting;
  for (const NcclHang& hang : report.nccl) {
    for (const NcclPart& part : hang.arrived) waiting.insert(part.group);
  }
  // Whoever others wait for may wait, too; a send may have ended without its receive.
  const auto doubts = [&](const NcclHang& hang) {
    if (hang.other_end || text.has_ended(hang)) return 0;
    if (hang.absent.empty()) return 4;
    if (is_held(hang)) return 3;
    const bool is_lone_send =
        hang.is_enqueued_only && model.regions[hang.region].name == "ncclSend";
    return (waiting.count(hang.absent.front().group) != 0 ? 2 : 0) + (is_lone_send ? 1 : 0);
  };
  const auto surest =
      std::min_element(report.nccl.begin(), report.nccl.end(),
                       [&](const NcclHang& a, const NcclHang& b) { return doubts(a) < doubts(b); });
  return text.finding(root_of(*surest, report.nccl));
}

std::string nccl_quiet_finding(const Model& model, const HangReport& report) {
  const auto has_failed = [&](const NcclPart& part) {
    const spool::Process* process = model.groups[part.group].process;
    return process != nullptr && process->exit.has_value();  // those that ended well are not in it
  };
  const auto found =
      std::find_if(report.nccl_quiet.begin(), report.nccl_quiet.end(), [&](const NcclHang& hang) {
        return std::any_of(hang.arrived.begin(), hang.arrived.end(), has_failed);
      });
  if (found == report.nccl_quiet.end()) return {};
  return NcclText(model, report, model.end_ns).quiet_text(*found);
}

bool may_hang(const Model& model) {
  const auto is_nccl = [](const GlobalCommunicator& communicator) {
    return communicator.kind == CommunicatorKind::kNccl;
  };
  return !model.open_calls.empty() || !model.stacks.empty() ||
         std::any_of(model.communicators.begin(), model.communicators.end(), is_nccl);
}

}  // namespace aon::writers
