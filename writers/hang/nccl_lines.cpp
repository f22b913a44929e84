// What hangs of NCCL, in sentences: the operations that do not end, who is in them, who is not and
// where that stands.

#include <fmt/format.h>

#include <algorithm>

#include "core/base/digits.h"
#include "writers/hang/hang.h"
#include "writers/hang/text.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxAbsent = 16;  ///< named with what they do; the others are listed

class NcclText : private HangText {
 public:
  NcclText(const Model& model, const HangReport& report, uint64_t now_ns)
      : HangText(model, report.last_ns, now_ns), model_(model) {}

  std::string finding(const NcclHang& hang) const {
    std::string text = hang.is_enqueued_only ? fmt::format("rank {} is quiet behind {}",
                                                           list(groups_of(hang)), operation(hang))
                                             : fmt::format("{} never ended: rank {} is in it",
                                                           operation(hang), list(groups_of(hang)));
    if (hang.differs) return text + ", with bytes or types that differ";
    if (!hang.wrong.empty()) {
      const NcclPart& wrong = hang.wrong.front();
      text +=
          fmt::format(", {} {} {} instead", who(wrong.group), is_in(hang), name_of(wrong.region));
      const size_t others = hang.absent.size() - 1;
      return others == 0 ? text : text + fmt::format(", and {} more did not arrive", others);
    }
    if (hang.absent.empty()) return text;
    if (hang.is_extra)
      return text + fmt::format(", {} others went on without it", hang.absent.size());
    text += fmt::format(", {} did not arrive", who(hang.absent[0]));
    if (hang.absent.size() > 1) text += fmt::format(" and {} more", hang.absent.size() - 1);
    return text;
  }

  std::vector<std::string> lines(const NcclHang& hang) {
    add_head(hang);
    std::vector<uint32_t> groups = groups_of(hang);
    const char* are_in_it = hang.is_enqueued_only ? "have enqueued it" : "in it";
    add(fmt::format("  {}: {}", are_in_it, list(groups)));
    append(stacks(groups));
    if (hang.differs) add_differences(hang);
    add_absent(hang);
    if (!hang.passed.empty()) add(fmt::format("  are beyond it: {}", list(hang.passed)));
    if (hang.unknown_count != 0)
      add(fmt::format("  of {} members it is not known: their records have holes or are not here",
                      hang.unknown_count));
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
  static const char* is_in(const NcclHang& hang) {
    return hang.is_enqueued_only ? "has enqueued" : "is in";
  }
  const std::string& name_of(uint32_t region) const { return model_.regions[region].name; }
  static std::vector<uint32_t> groups_of(const NcclHang& hang) {
    std::vector<uint32_t> groups;
    for (const NcclPart& part : hang.arrived) groups.push_back(part.group);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
  }
  std::string communicator(const NcclHang& hang) const {
    const std::string& name = model_.communicators[hang.communicator].name;
    return name.empty() ? "a communicator of NCCL" : name;
  }
  /// "ncclAllReduce 4 of world"; numbers begin with 1, as people count.
  std::string operation(const NcclHang& hang) const {
    return fmt::format("{} {} of {}", name_of(hang.region), hang.sequence + 1, communicator(hang));
  }

  void add_head(const NcclHang& hang) {
    if (hang.is_enqueued_only) {
      add(fmt::format(
          "{}: some have not come to it{}, and others are quiet for {}; at level api NCCL "
          "does not tell what has ended (AON_NCCL_LEVEL=gpu does)",
          operation(hang), instead_text(hang), for_seconds(hang.since_ns)));
      return;
    }
    const NcclPart& first = hang.arrived.front();
    const bool is_transfer = model_.regions[hang.region].role == RegionRole::kPointToPoint;
    const std::string with =
        is_transfer ? fmt::format("between ranks {} and {} of it", first.rank, first.operation.peer)
                    : fmt::format("{} members", model_.communicators[hang.communicator].rank_count);
    add(fmt::format("{} ({}, {} bytes) does not end, for {}", operation(hang), with,
                    grouped(first.operation.bytes), for_seconds(hang.since_ns)));
  }

  void add_differences(const NcclHang& hang) {
    add("  their bytes or types differ: one of them is wrong");
    std::map<std::pair<uint64_t, NcclType>, std::vector<uint32_t>> by_shape;
    for (const NcclPart& part : hang.arrived)
      by_shape[{part.operation.bytes, part.operation.type}].push_back(part.group);
    for (const auto& [shape, groups] : by_shape) {
      add(fmt::format("    {} bytes of type {}: {}", grouped(shape.first),
                      static_cast<unsigned>(shape.second), list(groups)));
    }
  }

  void add_absent(const NcclHang& hang) {
    for (size_t i = 0; i < std::min(hang.absent.size(), kMaxAbsent); ++i) {
      const uint32_t group = hang.absent[i];
      const auto wrong = std::find_if(hang.wrong.begin(), hang.wrong.end(),
                                      [&](const NcclPart& part) { return part.group == group; });
      if (wrong != hang.wrong.end()) {
        add(fmt::format("  {} {} {} {} of {} bytes instead: one of them is wrong", who(group),
                        is_in(hang), name_of(wrong->region), wrong->operation.sequence + 1,
                        grouped(wrong->operation.bytes)));
      } else {
        add(fmt::format("  {} {}: {}{}", who(group),
                        hang.is_extra ? "has not enqueued it" : "did not arrive", last_call(group),
                        end_text(group)));
      }
      append(stacks(std::span(&group, 1)));
    }
    if (hang.absent.size() > kMaxAbsent)
      add(fmt::format("  not there are, in all {}: {}", hang.absent.size(), list(hang.absent)));
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
  return lines;
}

std::string nccl_hang_finding(const Model& model, const HangReport& report) {
  if (report.nccl.empty()) return {};
  const auto named = std::find_if(report.nccl.begin(), report.nccl.end(),
                                  [](const NcclHang& hang) { return !hang.absent.empty(); });
  const NcclHang& hang = named == report.nccl.end() ? report.nccl.front() : *named;
  return NcclText(model, report, model.end_ns).finding(hang);
}

bool may_hang(const Model& model) {
  const auto is_nccl = [](const GlobalCommunicator& communicator) {
    return communicator.kind == CommunicatorKind::kNccl;
  };
  return !model.open_calls.empty() || !model.stacks.empty() ||
         std::any_of(model.communicators.begin(), model.communicators.end(), is_nccl);
}

}  // namespace aon::writers
