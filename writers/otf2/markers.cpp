#include "writers/otf2/markers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/digits.h"
#include "core/base/signal_text.h"

namespace aon::writers::otf2 {
namespace {

/// Cut at the border of a character.
std::string fitted(std::string text) {
  if (text.size() <= kMostMarkerTextBytes) return text;
  size_t end = kMostMarkerTextBytes;
  while (end != 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace

const char* marker_category(MarkerKind kind) {
  switch (kind) {
    case MarkerKind::kProcessEnd:
      return "incomplete process";
    case MarkerKind::kOpenAtEnd:
      return "open at end";
    case MarkerKind::kCut:
      return "cut by a loss";
    case MarkerKind::kLoss:
      return "lost";
    case MarkerKind::kCallBudget:
      return "budget: calls";
    case MarkerKind::kNcclLevel:
      return "NCCL's level";
    case MarkerKind::kCuptiBudget:
      return "budget: CUPTI";
    case MarkerKind::kNodeBudget:
      return "budget: samples and counts";
    case MarkerKind::kAgentRestart:
      return "agent restarted";
    case MarkerKind::kClockStep:
      break;
  }
  return "clock set";
}

bool Markers::takes(MarkerKind kind, uint64_t weight) const {
  const std::vector<Kept>& kept = of(kind).kept;
  if (kept.size() < most_of_kind_) return true;
  return !kept.empty() && weight > kept.front().marker.weight;
}

void Markers::add(Marker marker) {
  OfKind& kind = of(marker.kind);
  const uint64_t number = kind.offered_count++;
  if (!takes(marker.kind, marker.weight)) return;
  marker.text = fitted(std::move(marker.text));
  if (kind.kept.size() == most_of_kind_) {
    std::pop_heap(kind.kept.begin(), kind.kept.end(), goes_later);
    kind.kept.pop_back();
  }
  kind.kept.push_back({std::move(marker), number});
  std::push_heap(kind.kept.begin(), kind.kept.end(), goes_later);
}

size_t Markers::count() const {
  size_t count = 0;
  for (const OfKind& kind : kinds_) count += kind.kept.size();
  return count;
}

std::vector<const Marker*> Markers::by_time() const {
  std::vector<const Kept*> all;
  for (const OfKind& kind : kinds_) {
    for (const Kept& one : kind.kept) all.push_back(&one);
  }
  std::sort(all.begin(), all.end(), [](const Kept* a, const Kept* b) {
    return std::tie(a->marker.time_ns, a->marker.kind, a->number) <
           std::tie(b->marker.time_ns, b->marker.kind, b->number);
  });
  std::vector<const Marker*> markers;
  for (const Kept* one : all) markers.push_back(&one->marker);
  return markers;
}

void Markers::take(Markers others) {
  for (size_t i = 0; i < kMarkerKindCount; ++i) {
    const auto kind = static_cast<MarkerKind>(i);
    std::vector<Kept>& kept = others.of(kind).kept;
    leave_out(kind, others.left_out_count(kind));
    std::sort(kept.begin(), kept.end(), came_before);
    for (Kept& one : kept) add(std::move(one.marker));
  }
}

/// In the order in which they came: of one weight whoever combines keeps the first ones, too.
void Markers::save(StateOut* out) {
  for (OfKind& kind : kinds_) {
    std::sort(kind.kept.begin(), kind.kept.end(), came_before);
    out->put(kind.offered_count);
    out->put(uint64_t{kind.kept.size()});
    for (const Kept& one : kind.kept) {
      out->put(one.marker.scope);
      out->put(one.marker.scope_id);
      out->put(one.marker.time_ns);
      out->put(one.marker.duration_ns);
      out->put(one.marker.weight);
      out->put(one.marker.text);
    }
    kind = {};
  }
}

Status Markers::load(StateIn* in) {
  for (size_t kind = 0; kind < kMarkerKindCount; ++kind) {
    uint64_t offered_count = 0;
    uint64_t count = 0;
    if (!in->get(&offered_count) || !in->get(&count)) return in->status();
    in->check(count <= offered_count);
    for (uint64_t i = 0; i < count && in->status(); ++i) {
      Marker one{};
      one.kind = static_cast<MarkerKind>(kind);
      const bool is_good = in->get(&one.scope) && in->get(&one.scope_id) && in->get(&one.time_ns) &&
                           in->get(&one.duration_ns) && in->get(&one.weight) && in->get(&one.text);
      if (!is_good) return in->status();
      in->check(one.scope <= Marker::Scope::kProcess);  // of nodes no event tells
      add(std::move(one));
    }
    if (!in->status()) return in->status();
    leave_out(static_cast<MarkerKind>(kind), offered_count - count);
  }
  return {};
}

void EventMarkers::begin_location(const Location& location) {
  const Group* group = &model_.groups[location.group];
  location_ = location.type == LocationType::kSamples ? nullptr : &location;
  loss_.reset();
  if (group == group_) return;
  group_ = group;
  own_regions_.clear();
  for (const auto& [local, global] : group->region_map) {
    if (local != kUnknownRegion && model_.regions[global].paradigm == Paradigm::kAon)
      own_regions_.push_back(local);
  }
}

std::string EventMarkers::name_of(uint32_t region) const {
  const auto global = group_->region_map.find(region);
  const bool is_known = global != group_->region_map.end();
  return is_known ? model_.regions[global->second].name : "[unknown region]";
}

std::string EventMarkers::end_of_process() const {
  const spool::Process* process = group_->process;
  if (process == nullptr || !process->exit) return "the end of its process was not seen";
  if (process->exit->signal != 0)
    return "the process was killed by " + signal_text(process->exit->signal);
  if (process->exit->exit_code < 0) return "how the process ended is not known";
  return "the process ended with exit code " + std::to_string(process->exit->exit_code);
}

/// `text()` is asked for only where there is room.
template <class Text>
void EventMarkers::put(MarkerKind kind, const Event& event, uint64_t duration_ns, uint64_t weight,
                       Text text) {
  if (event.time_ns + duration_ns < model_.archive_start_ns) return;  // as its events
  if (!markers_->takes(kind, weight)) {
    markers_->leave_out(kind);
    return;
  }
  const bool is_master = location_->id == location_->group;
  const std::string who = group_->name + (is_master ? "" : ", " + location_->name);
  const auto scope = location_->in_archive ? Marker::Scope::kLocation : Marker::Scope::kProcess;
  const uint64_t scope_id = location_->in_archive ? location_->id : location_->group;
  markers_->add({kind, scope, scope_id, event.time_ns, duration_ns, weight, who + ": " + text()});
}

void EventMarkers::add_loss(const Event& begin, uint64_t end_ns) {
  const bool is_work = begin.kind == EventKind::kDeviceGap;
  const auto reason = is_work                           ? LossReason::kEvictedByCap
                      : begin.region < kLossReasonCount ? static_cast<LossReason>(begin.region)
                                                        : LossReason::kDamaged;
  put(MarkerKind::kLoss, begin, end_ns - std::min(end_ns, begin.time_ns), begin.bytes, [&] {
    const char* what = is_work                                    ? " pieces of work"
                       : location_->type == LocationType::kMetric ? " values"
                                                                  : " records";
    return grouped(begin.bytes) + what + ", " + loss_reason_name(reason);
  });
}

void EventMarkers::add(std::span<const Event> events) {
  if (location_ == nullptr) return;
  for (const Event& event : events) {
    switch (event.kind) {
      case EventKind::kOpenAtEnd:
        put(MarkerKind::kOpenAtEnd, event, 0, 0, [&] {
          return name_of(event.region) + " was open where its thread's records end; " +
                 end_of_process();
        });
        break;
      case EventKind::kCut:
        put(MarkerKind::kCut, event, 0, 0,
            [&] { return name_of(event.region) + ": its end was lost, it took longer"; });
        break;
      case EventKind::kLostBegin:
        loss_ = event;
        break;
      case EventKind::kLostEnd:
        if (loss_) add_loss(*loss_, event.time_ns);
        loss_.reset();
        break;
      case EventKind::kDeviceGap:
        if (event.bytes != 0) add_loss(event, event.time_ns + event.bytes_received);
        break;
      case EventKind::kMark:
        if (std::count(own_regions_.begin(), own_regions_.end(), event.region) != 0)
          put(MarkerKind::kCuptiBudget, event, 0, 0, [&] { return name_of(event.region); });
        break;
      default:
        break;
    }
  }
}

}  // namespace aon::writers::otf2
