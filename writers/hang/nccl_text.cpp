#include "writers/hang/nccl_text.h"

#include <aon/nccl.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/digits.h"
#include "writers/nccl/names.h"

namespace aon::writers {
namespace {

constexpr size_t kMaxRuns = 16;         ///< of ranks in a row
constexpr double kOutlivedSeconds = 5;  ///< those that are ended together end within this

std::vector<uint32_t> groups_of(const std::vector<NcclMember>& members) {
  std::vector<uint32_t> groups;
  for (const NcclMember& member : members) groups.push_back(member.group);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

std::string runs_of(const std::set<uint32_t>& ranks) {
  std::string text;
  size_t run_count = 0;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    if (++run_count > kMaxRuns) return text + ", ...";
    const uint32_t first = *rank;
    uint32_t last = first;
    while (++rank != ranks.end() && *rank == last + 1) last = *rank;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (last != first) text += fmt::format("-{}", last);
  }
  return text;
}

}  // namespace

NcclWords::NcclWords(const Model& model, const HangReport& report, uint64_t now_ns)
    : HangText(model, report.last_ns, now_ns),
      model_(model),
      is_live_(now_ns != model.end_ns),
      seen_ns_(report.last_ns) {
  for (const HostStack& stack : model.stacks)
    seen_ns_[stack.group] = std::max(seen_ns_[stack.group], stack.taken_ns);
  for (const uint32_t i : report.open_calls) {
    const OpenCall& call = model.open_calls[i];
    note_call(call.group, call.tid, call.start_ns);
  }
}

void NcclWords::note_members(const NcclHang& hang) {
  communicator_ = hang.communicator;
  member_counts_.clear();
  for (const auto* parts : {&hang.arrived, &hang.called}) {
    for (const NcclPart& part : *parts) ++member_counts_[part.group];
  }
  for (const auto* members : {&hang.absent, &hang.passed}) {
    for (const NcclMember& member : *members) ++member_counts_[member.group];
  }
}

void NcclWords::note_members(const NcclDisagreement& disagreement) {
  communicator_ = disagreement.communicator;
  member_counts_.clear();
  for (const auto& camp : disagreement.camps) {
    for (const NcclMember& member : camp.members) ++member_counts_[member.group];
  }
}

std::vector<NcclMember> NcclWords::members_of(const std::vector<NcclPart>& parts) {
  std::vector<NcclMember> members;
  for (const NcclPart& part : parts) members.push_back(member_of(part));
  return members;
}

/// Of a process that is several members of the communicator its rank does not tell which.
bool NcclWords::is_one_of_several(uint32_t group) const {
  const auto found = member_counts_.find(group);
  return found != member_counts_.end() && found->second > 1;
}

std::string NcclWords::who(const NcclMember& member) const {
  std::string text = HangText::who(member.group);
  const Group& group = model_.groups[member.group];
  if (!is_one_of_several(member.group) || group.process == nullptr) return text;
  text.pop_back();
  text += fmt::format("; rank {} of it", member.rank);
  for (const auto& [local, communicator] : group.process->communicators) {
    const auto global = group.communicator_map.find(local);
    const CommunicatorDefinition& told = communicator.definition;
    const uint8_t device = told.reserved[kNcclDevice];
    if (global == group.communicator_map.end() || global->second != communicator_) continue;
    if (told.rank == member.rank && device != 0) text += fmt::format(", GPU {}", device - 1);
  }
  return text + ")";
}

std::string NcclWords::list_of(const std::vector<NcclMember>& members) const {
  std::string text = list(groups_of(members));
  const bool has_several = std::any_of(members.begin(), members.end(), [&](const auto& member) {
    return is_one_of_several(member.group);
  });
  if (!has_several) return text;
  std::set<uint32_t> ranks;
  for (const NcclMember& member : members) ranks.insert(member.rank);
  return text + fmt::format(" (rank{} {} of it)", ranks.size() == 1 ? "" : "s", runs_of(ranks));
}

std::string NcclWords::are(const std::vector<NcclMember>& members) const {
  const bool is_one = groups_of(members).size() == 1;
  return fmt::format("{} {} {}", is_one ? "rank" : "ranks", list_of(members),
                     is_one ? "is" : "are");
}

std::vector<std::string> NcclWords::stacks_of(const std::vector<NcclMember>& members) const {
  std::set<std::pair<uint32_t, int32_t>> threads;
  for (const NcclMember& member : members) {
    const int32_t tid = tid_of(member.group, member.slot);
    threads.emplace(member.group, tid != 0 && has_stack(member.group, tid) ? tid : 0);
  }
  return stacks(std::vector(threads.begin(), threads.end()));
}

/// 0: it is not known.
int32_t NcclWords::tid_of(uint32_t group, uint32_t slot) const {
  const spool::Process* process = model_.groups[group].process;
  if (process == nullptr) return 0;
  const auto stream = process->streams.find({static_cast<uint16_t>(slot), uint16_t{0}});
  return stream == process->streams.end() ? 0 : stream->second.tid;
}

/// When the process ended; infinity: it goes on, minus infinity: it is not known. Nobody tells the
/// end of one that was lost with its agent: in a job that is over, when it was last seen alive.
double NcclWords::end_seconds(uint32_t group) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Group& one = model_.groups[group];
  if (one.process == nullptr || is_end_unknown(model_, one)) return -kInfinity;
  if (!one.process->exit && is_live_) return kInfinity;
  return about_end_ns(model_, one).value_or(static_cast<double>(seen_ns_[group])) * 1e-9;
}

NcclWords::Came NcclWords::split(const NcclHang& hang) const {
  double last_s = 0;
  const auto note = [&](const auto& members) {
    for (const auto& member : members) last_s = std::max(last_s, end_seconds(member.group));
  };
  note(hang.arrived);
  note(hang.absent);
  note(hang.called);
  note(hang.passed);
  Came came;
  for (const NcclPart& part : hang.arrived) {
    const bool has_exit = !end_text(part.group).empty();
    const bool has_ended = has_exit && end_seconds(part.group) + kOutlivedSeconds <= last_s;
    (has_ended ? came.ended : came.here).push_back(part);
  }
  return came;
}

std::string NcclWords::came_text(const NcclHang& hang) const {
  const Came came = split(hang);
  std::string text = hang.is_enqueued_only ? "" : operation(hang) + " never ended: ";
  std::string it = operation(hang);
  if (!came.ended.empty()) {
    const NcclPart& first = came.ended.front();
    text += who(first) + (hang.is_enqueued_only ? " had enqueued " + it : " was in it");
    text += end_text(first.group);
    if (came.ended.size() > 1)
      text += fmt::format(", and {} more have ended", came.ended.size() - 1);
    if (came.here.empty()) return text;
    text += "; ";
    it = "it";
  }
  return text + are(members_of(came.here)) +
         (hang.is_enqueued_only ? " quiet behind " + it : " in it");
}

std::string NcclWords::type_text(NcclType type) {
  if (type == NcclType::kUnknown || static_cast<size_t>(type) >= kNcclTypeCount) return "";
  return fmt::format(" of type {}", nccl::kTypeNames[static_cast<size_t>(type)]);
}

std::string NcclWords::shape_text(const NcclShape& shape) const {
  const std::string root = shape.root == kNoPeer ? "" : fmt::format(" with root {}", shape.root);
  return fmt::format("{}{} of {} bytes{}", region_name(shape.region), root, grouped(shape.bytes),
                     type_text(shape.type));
}

std::string NcclWords::name_of(uint32_t communicator) const {
  const std::string& name = model_.communicators[communicator].name;
  return name.empty() ? "a communicator of NCCL" : name;
}

std::string NcclWords::operation(const NcclHang& hang) const {
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

std::string NcclWords::part_text(const NcclPart& part) const {
  std::string text = fmt::format("{} {} of {} bytes", region_name(part.region),
                                 part.operation.sequence + 1, grouped(part.operation.bytes));
  if (model_.regions[part.region].role != RegionRole::kPointToPoint) return text;
  const bool sends = region_name(part.region) == "ncclSend";
  return text + fmt::format(" {} rank {} of it", sends ? "to" : "from", part.operation.peer);
}

}  // namespace aon::writers
