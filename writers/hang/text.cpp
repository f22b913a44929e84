#include "writers/hang/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace aon::writers {
namespace {

constexpr size_t kMaxFrames = 16;      ///< of a stack, innermost first
constexpr size_t kMaxStacks = 8;       ///< of one hang
constexpr size_t kMaxListBytes = 400;  ///< some 60 runs of ranks

bool is_poll(std::string_view name) {
  for (const char* start : {"MPI_Test", "MPI_Request_get_status", "MPI_Iprobe", "MPI_Improbe",
                            "MPI_Parrived", "MPI_Win_test"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

/// "poll < progress < main"
std::string frames_text(const HostStack& stack) {
  std::string text;
  for (size_t i = 0; i < std::min(stack.frames.size(), kMaxFrames); ++i)
    text += (i == 0 ? "" : " < ") + stack.frames[i];
  if (stack.frames.size() > kMaxFrames) text += " < ...";
  return text;
}

}  // namespace

std::string HangText::for_seconds(uint64_t since_ns) const {
  const uint64_t passed_ns = now_ns_ - std::min(since_ns, now_ns_);
  return fmt::format("{:.0f} s", static_cast<double>(passed_ns) * 1e-9);
}

std::string HangText::who(uint32_t group) const {
  const Group& one = model_.groups[group];
  std::string text = one.rank ? fmt::format("rank {}", *one.rank) : one.name;
  if (one.process == nullptr) return text;
  return text +
         fmt::format(" on {} (pid {})", model_.job->nodes[one.node].host, one.process->start.pid);
}

std::string HangText::list(std::vector<uint32_t> groups) const {
  std::sort(groups.begin(), groups.end());
  std::string text;
  for (size_t i = 0; i < groups.size();) {
    if (text.size() > kMaxListBytes) return text + fmt::format(" and {} more", groups.size() - i);
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

std::string HangText::end_text(uint32_t group) const {
  const Group& one = model_.groups[group];
  if (one.process == nullptr || !one.process->exit) return {};
  const ProcessExitDefinition& exit = *one.process->exit;
  return exit.signal != 0      ? fmt::format("; it was ended by signal {}", exit.signal)
         : exit.exit_code >= 0 ? fmt::format("; it has ended with code {}", exit.exit_code)
                               : "; it has ended";
}

std::string HangText::last_call(uint32_t group) const {
  if (last_ns_[group] == 0) return "it has recorded nothing";
  return fmt::format("its last call was over {} ago{}", for_seconds(last_ns_[group]),
                     polls_apart(group));
}

const char* HangText::polls_apart(uint32_t group) const {
  const Group& one = model_.groups[group];
  if (one.process == nullptr) return "";
  for (const auto& [site, call_count] : one.process->counts) {
    const auto global = one.region_map.find(site.second);
    if (global != one.region_map.end() && is_poll(model_.regions[global->second].name))
      return ", polls in vain apart";
  }
  return "";
}

bool HangText::is_exchange(const OpenCall& call) const {
  return call.region < model_.regions.size() &&
         model_.regions[call.region].name.starts_with("MPI_Sendrecv");
}

std::string HangText::partner_text(const OpenCall& call) const {
  if (call.peer == kAnyPeer) return " from any rank";
  if (call.peer < 0) return {};
  return fmt::format(" {} rank {}", is_exchange(call) ? "sending to" : "with", call.peer);
}

const HostStack* HangText::stack(uint32_t group, int32_t tid) const {
  const spool::Process* process = model_.groups[group].process;
  if (tid == 0 && process != nullptr) tid = process->start.pid;
  const auto found =
      std::find_if(model_.stacks.begin(), model_.stacks.end(),
                   [&](const HostStack& one) { return one.group == group && one.tid == tid; });
  // One that is older than what the process recorded last is of another time.
  const auto call = calls_.find({group, tid});
  const uint64_t least_ns = call != calls_.end() ? call->second : last_ns_[group];
  if (found == model_.stacks.end() || found->taken_ns < least_ns) return nullptr;
  return found->frames.empty() && found->remark.empty() ? nullptr : &*found;
}

std::vector<std::string> HangText::stacks(
    std::span<const std::pair<uint32_t, int32_t>> threads) const {
  std::map<std::pair<std::string, std::string>, std::vector<uint32_t>> by_text;
  for (const auto& [group, tid] : threads) {
    if (const HostStack* one = stack(group, tid))
      by_text[{frames_text(*one), one->remark}].push_back(group);
  }
  std::vector<std::string> lines;
  for (const auto& [texts, groups] : by_text) {
    if (lines.size() == kMaxStacks) {
      lines.push_back(fmt::format("    and {} more stacks", by_text.size() - kMaxStacks));
      break;
    }
    const auto& [frames, remark] = texts;
    std::string text = "    " + list(groups);
    if (!frames.empty())
      text += fmt::format(" {} in {}", groups.size() == 1 ? "stands" : "stand", frames);
    if (!remark.empty()) text += frames.empty() ? ": " + remark : fmt::format(" ({})", remark);
    lines.push_back(std::move(text));
  }
  return lines;
}

std::vector<std::string> HangText::stacks(std::span<const uint32_t> groups) const {
  std::vector<std::pair<uint32_t, int32_t>> threads;
  for (const uint32_t group : groups) threads.emplace_back(group, 0);
  return stacks(threads);
}

}  // namespace aon::writers
