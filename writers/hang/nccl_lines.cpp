// What hangs of NCCL, in sentences: the operations that do not end, who is in them, who is not and
// where that stands.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/digits.h"
#include "writers/hang/hang.h"
#include "writers/hang/text.h"
#include "writers/nccl/names.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxAbsent = 16;  ///< named with what they do; the others are listed
constexpr size_t kMaxCamps = 16;   ///< of members that called something else, in lines
constexpr size_t kFindingCamps = 4;

class NcclText : private HangText {
 public:
  NcclText(const Model& model, const HangReport& report, uint64_t now_ns)
      : HangText(model, report.last_ns, now_ns), model_(model) {}

  std::string finding(const NcclHang& hang) const {
    const std::vector<uint32_t> groups = groups_of(hang);
    const bool is_one = groups.size() == 1;
    const std::string ranks = (is_one ? "rank " : "ranks ") + list(groups);
    const char* verb = is_one ? "is" : "are";
    std::string text =
        hang.is_enqueued_only
            ? fmt::format("{} {} quiet behind {}", ranks, verb, operation(hang))
            : fmt::format("{} never ended: {} {} in it", operation(hang), ranks, verb);
    if (hang.differs) return text + ", with bytes, types or roots that differ";
    if (hang.other_end) return text + ", " + unlike_text(hang);
    if (is_lone_end(hang))
      return text + fmt::format(", {} {}", who(hang.absent[0].group), lone_text(hang));
    if (!hang.wrong.empty()) return text + instead_finding(hang);
    if (hang.absent.empty()) return text;
    const std::vector<NcclMember> missing = missing_of(hang);
    if (hang.is_extra || missing.empty()) {
      text += fmt::format(", {} {} went on without it", hang.went_on.size(),
                          hang.went_on.size() == 1 ? "other" : "others");
      return missing.empty() ? text : text + fmt::format(", {} did not arrive", missing.size());
    }
    text += fmt::format(", {} did not arrive", who(missing[0].group));
    if (missing.size() > 1) text += fmt::format(" and {} more", missing.size() - 1);
    return text;
  }

  std::string finding(const NcclDisagreement& disagreement) const {
    std::string text = fmt::format("collective {} of {} is not the same everywhere",
                                   disagreement.number + 1, name_of(disagreement.communicator));
    const size_t told = std::min(disagreement.camps.size(), kFindingCamps);
    for (size_t i = 0; i < told; ++i) {
      const auto& camp = disagreement.camps[i];
      text += fmt::format("{}rank {} called {}", i == 0 ? ": " : ", ",
                          list(groups_of(camp.members)), shape_text(camp.shape));
    }
    if (disagreement.camps.size() > told)
      text += fmt::format(", and others in {} more ways", disagreement.camps.size() - told);
    return text;
  }

  std::vector<std::string> lines(const NcclDisagreement& disagreement) {
    add(fmt::format("collective {} of {}: its members called it differently, one of them is wrong",
                    disagreement.number + 1, name_of(disagreement.communicator)));
    const size_t told = std::min(disagreement.camps.size(), kMaxCamps);
    for (size_t i = 0; i < told; ++i) {
      const auto& camp = disagreement.camps[i];
      std::vector<uint32_t> groups = groups_of(camp.members);
      add(fmt::format("  {}: {}", shape_text(camp.shape), list(groups)));
      append(stacks(groups));
    }
    if (disagreement.camps.size() > told)
      add(fmt::format("  and others in {} more ways", disagreement.camps.size() - told));
    return std::move(lines_);
  }

  std::vector<std::string> lines(const NcclHang& hang) {
    add_head(hang);
    std::vector<uint32_t> groups = groups_of(hang);
    const char* are_in_it = hang.is_enqueued_only ? "have enqueued it" : "in it";
    add(fmt::format("  {}: {}", are_in_it, list(groups)));
    append(stacks(groups));
    if (hang.differs) add_differences(hang);
    if (hang.other_end) add(fmt::format("  {}: one of them is wrong", unlike_text(hang)));
    add_absent(hang);
    if (!hang.passed.empty()) add(fmt::format("  are beyond it: {}", list(groups_of(hang.passed))));
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
  /// Who is in another operation, how many others are, and how many came to none.
  std::string instead_finding(const NcclHang& hang) const {
    const NcclPart& wrong = hang.wrong.front();
    std::string text =
        fmt::format(", {} {} {} instead", who(wrong.group), is_in(hang), region_name(wrong.region));
    const size_t more = hang.wrong.size() - 1;
    if (more != 0)
      text += fmt::format(", and {} more {} in another one", more, more == 1 ? "is" : "are");
    const size_t missing = missing_of(hang).size();
    if (missing != 0) text += fmt::format(", and {} more did not arrive", missing);
    return text;
  }
  static const NcclPart* wrong_of(const NcclHang& hang, const NcclMember& member) {
    const auto found =
        std::find_if(hang.wrong.begin(), hang.wrong.end(), [&](const NcclPart& part) {
          return part.group == member.group && part.rank == member.rank;
        });
    return found == hang.wrong.end() ? nullptr : &*found;
  }
  static bool went_on(const NcclHang& hang, const NcclMember& member) {
    return std::find(hang.went_on.begin(), hang.went_on.end(), member) != hang.went_on.end();
  }
  /// The absent ones that came to nothing else.
  static std::vector<NcclMember> missing_of(const NcclHang& hang) {
    std::vector<NcclMember> missing;
    for (const NcclMember& member : hang.absent) {
      if (wrong_of(hang, member) == nullptr && !went_on(hang, member)) missing.push_back(member);
    }
    return missing;
  }
  bool is_transfer(const NcclHang& hang) const {
    return model_.regions[hang.region].role == RegionRole::kPointToPoint;
  }
  bool is_send(const NcclHang& hang) const { return region_name(hang.region) == "ncclSend"; }
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
  const std::string& region_name(uint32_t region) const { return model_.regions[region].name; }
  static std::string type_text(NcclType type) {
    if (type == NcclType::kUnknown || static_cast<size_t>(type) >= kNcclTypeCount) return "";
    return fmt::format(" of type {}", nccl::kTypeNames[static_cast<size_t>(type)]);
  }
  /// "ncclBroadcast with root 1 of 4 096 bytes of type float32"; roots by the communicator's ranks.
  std::string shape_text(const NcclShape& shape) const {
    const std::string root = shape.root == kNoPeer ? "" : fmt::format(" with root {}", shape.root);
    return fmt::format("{}{} of {} bytes{}", region_name(shape.region), root, grouped(shape.bytes),
                       type_text(shape.type));
  }
  static std::vector<uint32_t> groups_of(const NcclHang& hang) { return groups_of(hang.arrived); }
  template <class Member>
  static std::vector<uint32_t> groups_of(const std::vector<Member>& members) {
    std::vector<uint32_t> groups;
    for (const Member& member : members) groups.push_back(member.group);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
  }
  std::string name_of(uint32_t communicator) const {
    const std::string& name = model_.communicators[communicator].name;
    return name.empty() ? "a communicator of NCCL" : name;
  }
  /// "rank 1 on n1 (pid 101) has called ncclRecv with 128 bytes, not 64"
  std::string unlike_text(const NcclHang& hang) const {
    const NcclPart& other = *hang.other_end;
    return fmt::format("{} has called {} with {} bytes, not {}", who(other.group),
                       region_name(other.region), grouped(other.operation.bytes),
                       grouped(hang.arrived.front().operation.bytes));
  }
  /// "ncclAllReduce 4 of world", "ncclRecv 2 of world from rank 1 of it"; numbers begin with 1, as
  /// people count, and several that wait for one other end have numbers of their own.
  std::string operation(const NcclHang& hang) const {
    if (hang.is_enqueued_only && is_transfer(hang)) {
      const std::string number =
          hang.arrived.size() == 1 ? fmt::format(" {}", hang.sequence + 1) : "";
      return fmt::format("{}{} of {} {} rank {} of it", region_name(hang.region), number,
                         name_of(hang.communicator), is_send(hang) ? "to" : "from",
                         hang.arrived.front().operation.peer);
    }
    return fmt::format("{} {} of {}", region_name(hang.region), hang.sequence + 1,
                       name_of(hang.communicator));
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
    std::map<NcclShape, std::vector<uint32_t>> by_shape;
    for (const NcclPart& part : hang.arrived) {
      const int32_t root = is_transfer(hang) ? kNoPeer : part.operation.peer;
      by_shape[{hang.region, root, part.operation.type, part.operation.bytes}].push_back(
          part.group);
    }
    size_t count = 0;
    for (const auto& [shape, groups] : by_shape) {
      if (++count > kMaxCamps) {
        add(fmt::format("    and {} other ones", by_shape.size() - kMaxCamps));
        break;
      }
      const std::string root =
          shape.root == kNoPeer ? "" : fmt::format(" with root {}", shape.root);
      add(fmt::format("    {} bytes{}{}: {}", grouped(shape.bytes), type_text(shape.type), root,
                      list(groups)));
    }
  }

  void add_absent(const NcclHang& hang) {
    for (size_t i = 0; i < std::min(hang.absent.size(), kMaxAbsent); ++i) {
      const NcclMember& member = hang.absent[i];
      const uint32_t group = member.group;
      if (const NcclPart* wrong = wrong_of(hang, member)) {
        add(fmt::format("  {} {} {} {} of {} bytes instead: one of them is wrong", who(group),
                        is_in(hang), region_name(wrong->region), wrong->operation.sequence + 1,
                        grouped(wrong->operation.bytes)));
      } else {
        add(fmt::format("  {} {}: {}{}", who(group), absent_text(hang, member), last_call(group),
                        end_text(group)));
      }
      append(stacks(std::span(&group, 1)));
    }
    if (hang.absent.size() > kMaxAbsent)
      add(fmt::format("  not there are, in all {}: {}", hang.absent.size(),
                      list(groups_of(hang.absent))));
  }
  std::string absent_text(const NcclHang& hang, const NcclMember& member) const {
    if (is_lone_end(hang)) return lone_text(hang);
    if (went_on(hang, member)) return "went on without it";
    return hang.is_extra ? "has not enqueued it" : "did not arrive";
  }

  const Model& model_;
  std::vector<std::string> lines_;
};

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
  if (report.nccl_left_out_count != 0)
    lines.push_back(fmt::format("and {} more operations of NCCL do not end",
                                grouped(report.nccl_left_out_count)));
  return lines;
}

std::string nccl_hang_finding(const Model& model, const HangReport& report) {
  const NcclText text(model, report, model.end_ns);
  // Who called something else explains why others do not come to an end.
  if (!report.nccl_disagreements.empty()) return text.finding(report.nccl_disagreements.front());
  if (report.nccl.empty()) return {};
  std::set<uint32_t> waiting;
  for (const NcclHang& hang : report.nccl) {
    for (const NcclPart& part : hang.arrived) waiting.insert(part.group);
  }
  // Whoever others wait for may wait, too; a send may have ended without its receive.
  const auto doubts = [&](const NcclHang& hang) {
    if (hang.other_end) return 0;
    if (hang.absent.empty()) return 4;
    const bool is_lone_send =
        hang.is_enqueued_only && model.regions[hang.region].name == "ncclSend";
    return (waiting.count(hang.absent.front().group) != 0 ? 2 : 0) + (is_lone_send ? 1 : 0);
  };
  const auto surest =
      std::min_element(report.nccl.begin(), report.nccl.end(),
                       [&](const NcclHang& a, const NcclHang& b) { return doubts(a) < doubts(b); });
  return text.finding(*surest);
}

bool may_hang(const Model& model) {
  const auto is_nccl = [](const GlobalCommunicator& communicator) {
    return communicator.kind == CommunicatorKind::kNccl;
  };
  return !model.open_calls.empty() || !model.stacks.empty() ||
         std::any_of(model.communicators.begin(), model.communicators.end(), is_nccl);
}

}  // namespace aon::writers
