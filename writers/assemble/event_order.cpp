#include "writers/assemble/event_order.h"

#include <aon/mpi.h>

#include <algorithm>

#include "writers/profile/late_begin.h"

namespace aon::writers {
namespace {

constexpr uint32_t kDenseIds = 1u << 16;

bool waits_for_enclosing(const RecordHead& head) {
  return (head.flags & (kInsideSpan | kOpenAtEnd)) != 0 || head.kind == RecordKind::kLost;
}

bool is_of_one(const GlobalCommunicator& communicator) {
  return communicator.kind == CommunicatorKind::kSelf || communicator.rank_count == 1;
}

/// Those of the gap before a batch; what the writer itself refused comes behind it.
std::span<const Record> leading_losses(std::span<const Record> records) {
  constexpr auto kPoolFull = static_cast<uint32_t>(LossReason::kPoolFull);
  size_t count = 0;
  while (count < records.size() && records[count].head.kind == RecordKind::kLost &&
         records[count].head.id != kPoolFull)
    ++count;
  return records.first(count);
}

}  // namespace

KnownIds::KnownIds(const std::unordered_map<uint32_t, uint32_t>& ids,
                   const std::vector<GlobalRegion>* regions) {
  for (const auto& [local, global] : ids) {
    const uint8_t kind = regions == nullptr ? 0 : static_cast<uint8_t>((*regions)[global].paradigm);
    if (local >= kDenseIds) {
      sparse_[local] = kind;
      continue;
    }
    if (local >= dense_.size()) dense_.resize(local + 1, kUnknown);
    dense_[local] = kind;
  }
}

uint8_t KnownIds::sparse_kind(uint32_t id) const {
  const auto found = sparse_.find(id);
  return found == sparse_.end() ? kUnknown : found->second;
}

EventOrder::EventOrder(const clock::ClockMap& clock, const IdTables& ids, GroupRequests* requests,
                       OpenIo* open_io, Outcome* outcome, LocationTally* tally, Sink sink)
    : clock_(clock),
      regions_(*ids.regions, ids.global_regions),
      communicators_(*ids.communicators),
      windows_(*ids.windows),
      rank_groups_(*ids.rank_groups),
      files_(*ids.files),
      file_names_(*ids.file_names),
      metrics_(ids.metrics),
      open_io_(open_io),
      outcome_(outcome),
      tally_(tally),
      sink_(std::move(sink)),
      requests_(requests) {
  for (const auto& [local, global] : *ids.communicators) {
    const GlobalCommunicator& communicator = (*ids.global_communicators)[global];
    if (communicator.is_of_worlds) of_worlds_[local] = &communicator;
    if (is_of_one(communicator)) of_one_.insert(local);
  }
  for (const auto& [local, global] : *ids.windows) {
    const uint32_t communicator = (*ids.global_windows)[global].communicator;
    if (is_of_one((*ids.global_communicators)[communicator])) windows_of_one_.insert(local);
  }
  for (const auto& [local, global] : *ids.files) {
    const std::optional<uint32_t> communicator = (*ids.global_files)[global].communicator;
    if (communicator && is_of_one((*ids.global_communicators)[*communicator]))
      files_of_one_.insert(local);
  }
  events_.reserve(kEventBatch + 8);
  nccl_.reserve(kEventBatch + 8);
  nccl_proxy_.reserve(kEventBatch + 8);
}

int32_t EventOrder::known_rank(uint32_t communicator, int32_t rank) const {
  const auto found = of_worlds_.find(communicator);
  if (found == of_worlds_.end()) return rank;
  const std::vector<uint32_t>& ranks = found->second->ranks;
  const auto wanted = static_cast<uint32_t>(rank);
  const auto place = std::lower_bound(ranks.begin(), ranks.end(), wanted);
  if (place == ranks.end() || *place != wanted) return kNoPeer;
  return static_cast<int32_t>(place - ranks.begin());
}

bool EventOrder::is_partial(uint32_t communicator) const {
  const auto found = of_worlds_.find(communicator);
  return found != of_worlds_.end() && found->second->is_partial();
}

/// Whether it is known, and more than the process itself is in it.
bool EventOrder::has_others(uint32_t communicator) const {
  return communicators_.contains(communicator) && !of_one_.contains(communicator);
}

/// A call without a communicator, window or file, or a collective of one member.
bool EventOrder::concerns_nobody_else(const Record& record) const {
  const RecordHead& head = record.head;
  if (head.kind == RecordKind::kCollective) return !has_others(head.a32);
  if (is_numbered_on_window(record))
    return !windows_.contains(head.a32) || windows_of_one_.contains(head.a32);
  if (is_collective_on_file(record))
    return !files_.contains(head.a32) || files_of_one_.contains(head.a32);
  const bool is_message = head.kind == RecordKind::kMessage || head.kind == RecordKind::kExchange;
  return is_message && !communicators_.contains(head.a32);
}

/// Which collective one that failed would have been.
void EventOrder::tell_failed_collective(const Record& record, Event* enter) {
  const bool is_collective = record.head.kind == RecordKind::kCollective;
  if (is_collective || is_numbered_on_window(record) || is_collective_on_file(record))
    enter->communicator = record.head.a32;
  if (!is_collective) return;
  enter->operation = static_cast<CollectiveOperation>(pair_high(record.words[1]));
  enter->bytes = collective_instance(record);
}

Status EventOrder::add(const spool::StreamBatch& batch) {
  std::span<const Record> records = batch.records;
  if (batch.is_resync) {
    const std::span<const Record> losses = leading_losses(records);
    resync(batch.open, losses);
    records = records.subspan(losses.size());
  }
  for (const Record& record : records) add_record(record);
  return status_;
}

Status EventOrder::finish(uint64_t end_ticks) {
  release_all(UINT64_MAX);
  const uint64_t end_ns = end_ticks == 0 ? last_ns_ : clock_.to_ns(end_ticks);
  close_regions(0, std::max(end_ns, last_ns_), Close::kOpenAtEnd);
  outcome_->open_transfer_count += transfers_.open_count();
  requests_.finish();
  flush();
  return status_;
}

/// Makes the stack of open regions what `open` says it is. The `losses` before it lie between the
/// regions that were open already and those that began in them.
void EventOrder::resync(std::span<const spool::OpenRegion> open, std::span<const Record> losses) {
  release_all(UINT64_MAX);
  left_out_.clear();
  const auto is_same = [this](const Region& mine, const spool::OpenRegion& told) {
    if (told.region == spool::kUnseenRegion) return mine.unseen_count == told.start_ticks;
    return mine.unseen_count == 0 && mine.start_ticks == told.start_ticks &&
           mine.id == known_region(told.region);
  };
  size_t next = 0;
  while (next < open_.size() && next < open.size() && is_same(open_[next], open[next])) ++next;
  const uint64_t gap_ns = losses.empty() ? last_ns_ : clock_.to_ns(losses[0].head.start_ticks);
  close_regions(next, std::max(gap_ns, last_ns_), Close::kCut);
  while (next < open.size() && (losses.empty() || open[next].region == spool::kUnseenRegion ||
                                open[next].start_ticks <= losses[0].head.start_ticks)) {
    enter_open(open[next++]);
  }
  for (const Record& lost : losses) emit_lost(lost, UINT64_MAX);
  for (; next < open.size(); ++next) enter_open(open[next]);
}

/// Regions have begun in a hole and are open behind it.
void EventOrder::push_unseen(uint64_t count) {
  if (count == 0) return;
  if (open_.size() > span_base_ && open_.back().unseen_count != 0) {
    open_.back().unseen_count += count;
  } else {
    open_.push_back({spool::kUnseenRegion, 0, count});
  }
}

/// Whether a region that begins is shown. Where too many are open it is not, nor is its end.
bool EventOrder::has_room(uint32_t region) {
  if (open_.size() < kMaxOpen) return true;
  ++left_out_[region];
  ++outcome_->unbalanced_region_count;
  return false;
}

/// Whether what ends is a region that is not shown.
bool EventOrder::was_left_out(uint32_t region) {
  if (left_out_.empty()) return false;
  const auto found = left_out_.find(region);
  if (found == left_out_.end()) return false;
  if (--found->second == 0) left_out_.erase(found);
  return true;
}

/// The `count` newest regions have ended in a hole that begins now. Those that are not shown are
/// newer than all that are.
void EventOrder::cut_regions(uint32_t count, uint64_t time_ns) {
  uint64_t left = count == kAllRegions ? UINT64_MAX : count;
  while (left != 0 && !left_out_.empty()) {
    const auto any = left_out_.begin();
    const uint64_t ended = std::min(left, any->second);
    left -= ended;
    any->second -= ended;
    if (any->second == 0) left_out_.erase(any);
  }
  while (left != 0 && open_.size() > span_base_) {
    Region& newest = open_.back();
    const uint64_t here = std::max<uint64_t>(newest.unseen_count, 1);
    if (here > left) {
      newest.unseen_count -= left;
      return;
    }
    left -= here;
    close_newest(time_ns, Close::kCut);
  }
}

void EventOrder::enter_open(const spool::OpenRegion& region) {
  if (region.region == spool::kUnseenRegion) {
    push_unseen(region.start_ticks);
    return;
  }
  Event& enter = enter_region(region.region, region.start_ticks);
  const uint64_t begin_ns = clock_.to_ns(region.start_ticks);
  if (begin_ns < enter.time_ns) profile::set_begin_in_hole(&enter, begin_ns);
}

void EventOrder::count(const RecordHead& head) {
  ++tally_->decoded;
  if (head.kind == RecordKind::kSample) {
    ++tally_->samples;
    return;
  }
  if (head.kind == RecordKind::kCounters) {
    ++tally_->counters;
    tally_->inexact_counters += (head.a32 & kInexact) != 0 ? 1 : 0;
    return;
  }
  if (head.kind == RecordKind::kCallSample) {
    ++tally_->call_samples;
    return;
  }
  const uint8_t paradigm = head.kind == RecordKind::kCompletion
                               ? static_cast<uint8_t>(Paradigm::kMpi)
                               : regions_.kind(head.id);
  if (paradigm < kParadigmCount) ++tally_->by_paradigm[paradigm];
}

/// A call that nothing encloses, with the records made inside it.
void EventOrder::emit_call(const Record& record) {
  const Record* counters = has_counters_of(record.head) ? &counters_ : nullptr;
  if (roots_.empty()) {
    emit_span(record, kNone, counters);
    return;
  }
  Node parent;
  const uint32_t first = adopt(record, &parent);
  release(record.head.start_ticks);
  emit_span(record, first, counters);
  nodes_.clear();
  held_counters_.clear();
}

void EventOrder::add_record(const Record& record) {
  if (is_counted(record.head.kind)) count(record.head);
  if (record.head.kind == RecordKind::kCounters) {
    counters_ = record;
    return;
  }
  if (record.head.kind == RecordKind::kNcclCall) {
    emit_nccl(record);
    return;
  }
  if (waits_for_enclosing(record.head)) {
    hold(record);
    return;
  }
  switch (record.head.kind) {
    case RecordKind::kSpan:
    case RecordKind::kMessage:
    case RecordKind::kExchange:
    case RecordKind::kCollective:
    case RecordKind::kRma:
    case RecordKind::kIo: {
      emit_call(record);
      return;
    }
    default:
      if (!roots_.empty()) release_all(record.head.start_ticks);
      emit_simple(record, take_border_counters(record.head));
  }
}

void EventOrder::flush() {
  if (events_.empty()) return;
  outcome_->event_count += events_.size();
  if (status_) status_ = sink_(events_);
  events_.clear();
  nccl_.clear();
  nccl_proxy_.clear();
}

}  // namespace aon::writers
