#include "writers/hang/hang.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace aon::writers {

Status HangFinder::begin(const Model& model) {
  model_ = &model;
  progress_.resize(model.groups.size());
  report_.last_ns.resize(model.groups.size());
  return {};
}

Status HangFinder::begin_location(const Location& location) {
  group_ = location.group;
  is_thread_ = location.type == LocationType::kThread;
  communicators_ = profile::LocalIds(model_->groups[group_].communicator_map);
  has_returned_ = false;
  entered_ns_.clear();
  open_call_.reset();
  if (!is_thread_) return {};
  for (uint32_t i = 0; i < model_->open_calls.size(); ++i) {
    const OpenCall& call = model_->open_calls[i];
    if (call.group == group_ && call.slot == location.slot) open_call_ = i;
  }
  return {};
}

Status HangFinder::events(std::span<const Event> events) {
  if (!is_thread_) return {};
  for (const Event& event : events) add(event);
  if (!events.empty())
    report_.last_ns[group_] = std::max(report_.last_ns[group_], events.back().time_ns);
  return {};
}

void HangFinder::add(const Event& event) {
  const uint64_t open_ns = open_call_ ? model_->open_calls[*open_call_].start_ns : UINT64_MAX;
  switch (event.kind) {
    case EventKind::kEnter:
      // Its own record, or a later one: it has returned.
      has_returned_ = has_returned_ || event.time_ns >= open_ns;
      entered_ns_.push_back(event.time_ns);
      break;
    case EventKind::kLeave:
      if (!entered_ns_.empty()) entered_ns_.pop_back();
      break;
    case EventKind::kOpenAtEnd:
      if (!entered_ns_.empty() && entered_ns_.back() == open_ns) has_returned_ = false;
      break;
    case EventKind::kCollectiveEnd:
    case EventKind::kCollectiveRequest:
      if (event.operation < CollectiveOperation::kCreateHandle)
        ++progress_[group_].finished[communicators_.global(event.communicator)];
      break;
    case EventKind::kLostBegin:
      progress_[group_].has_hole = true;
      break;
    default:
      break;
  }
}

Status HangFinder::end_location() {
  if (open_call_ && !has_returned_) report_.open_calls.push_back(*open_call_);
  return {};
}

bool HangFinder::is_collective(const OpenCall& call) const {
  if (!call.communicator || call.region >= model_->regions.size()) return false;
  switch (model_->regions[call.region].role) {
    case RegionRole::kBarrier:
    case RegionRole::kOneToAll:
    case RegionRole::kAllToOne:
    case RegionRole::kAllToAll:
    case RegionRole::kCollectiveOther:
      return true;
    default:
      return false;
  }
}

std::optional<uint64_t> HangFinder::number_of(uint32_t group, uint32_t communicator) const {
  const Progress& progress = progress_[group];
  if (progress.has_hole) return std::nullopt;
  const auto found = progress.finished.find(communicator);
  return found == progress.finished.end() ? 0 : found->second;
}

Status HangFinder::finish(const Outcome&) {
  std::map<uint32_t, std::vector<uint32_t>> by_communicator;
  for (const uint32_t i : report_.open_calls) {
    const OpenCall& call = model_->open_calls[i];
    if (is_collective(call)) by_communicator[*call.communicator].push_back(i);
  }
  for (const auto& [communicator, calls] : by_communicator) find_in(communicator, calls);
  return {};
}

/// Members may be in different ones of its collectives: each is a hang of its own.
void HangFinder::find_in(uint32_t communicator, std::span<const uint32_t> calls) {
  std::set<uint64_t> numbers;
  for (const uint32_t i : calls) {
    const auto number = number_of(model_->open_calls[i].group, communicator);
    if (number) numbers.insert(*number);
  }
  if (numbers.empty()) add_hang(communicator, std::nullopt, calls);
  for (const uint64_t number : numbers) add_hang(communicator, number, calls);
}

void HangFinder::add_hang(uint32_t communicator, std::optional<uint64_t> number,
                          std::span<const uint32_t> calls) {
  Hang hang;
  hang.communicator = communicator;
  hang.number = number;
  std::set<uint32_t> in_call;
  for (const uint32_t i : calls) {
    const OpenCall& call = model_->open_calls[i];
    const auto own = number_of(call.group, communicator);
    if (own && number && *own != *number) continue;
    hang.arrived.push_back(i);
    in_call.insert(call.group);
    hang.since_ns = std::min(hang.since_ns, call.start_ns);
    hang.is_mismatch |= call.region != model_->open_calls[hang.arrived.front()].region;
  }
  for (const int64_t member : model_->communicators[communicator].members) {
    if (member < 0 || static_cast<size_t>(member) >= model_->groups.size()) {
      ++hang.unknown_count;
      continue;
    }
    const auto group = static_cast<uint32_t>(member);
    if (in_call.count(group) != 0) continue;
    const auto own = number_of(group, communicator);
    const bool has_passed = own && number && *own > *number;
    (has_passed ? hang.passed : hang.absent).push_back(group);
  }
  std::sort(hang.arrived.begin(), hang.arrived.end(), [&](uint32_t a, uint32_t b) {
    const OpenCall& x = model_->open_calls[a];
    const OpenCall& y = model_->open_calls[b];
    return std::tie(x.region, x.group) < std::tie(y.region, y.group);
  });
  report_.hangs.push_back(std::move(hang));
}

}  // namespace aon::writers
