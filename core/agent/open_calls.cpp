// Calls that do not return, as rings show them: who is in one for long, and who records nothing.

#include <aon/device.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/agent/drainer.h"

namespace aon::agent {
namespace {

constexpr uint32_t kMaxQuietThreads = 8;  ///< of a process whose stacks are taken
constexpr uint64_t kLongPassNs = 5'000'000'000;

}  // namespace

/// No sign of life of the program: that work is not recorded, which CUPTI's plugin tells now and
/// then, whatever the program does.
bool Drainer::is_told_by_us(std::span<const uint8_t> records) {
  constexpr size_t kMostBytes = 256;  // seldom more than one a drain: the others are not looked at
  if (records.empty() || records.size() > kMostBytes) return false;
  while (records.size() >= kSlotBytes) {
    RecordHead head;
    std::memcpy(&head, records.data(), sizeof(head));
    const size_t bytes = size_t{head.slot_count} * kSlotBytes;
    if (head.kind != RecordKind::kDeviceSpan || head.a32 != kUnrecordedStream) return false;
    if (bytes == 0 || bytes > records.size()) return false;
    records = records.subspan(bytes);
  }
  return true;
}

void Drainer::show_call(uint32_t cell, const BegunCall& call) {
  const auto it = rings_.find(cell);
  const std::string name(call.name, strnlen(call.name, sizeof(call.name)));
  const uint64_t ticks = settings_.clock_is_tsc ? call.tsc : call.raw_ns;
  if (it == rings_.end() || name.empty() || ticks == 0) return;
  RegionDefinition region{};
  region.id = call.region;
  region.role = static_cast<RegionRole>(call.role);
  region.paradigm = static_cast<Paradigm>(call.paradigm);
  inbox_->define(it->second.process, DefinitionType::kRegion, region, {name});
  const auto tid = static_cast<uint32_t>(state_->process(cell).pid);
  it->second.memory->show_call(tid, ticks, call.region);
  if (is_mpi_init(call)) it->second.init_region = call.region;
}

void Drainer::withdraw_call(uint32_t cell) {
  const auto it = rings_.find(cell);
  if (it != rings_.end()) it->second.memory->show_call(0, 0, 0);
}

/// Where a job is suspended its agent is, too: in that time no rank hangs.
void Drainer::note_pass(uint64_t now_ns) noexcept {
  const uint64_t since_ns = now_ns - last_pass_ns_;
  if (last_pass_ns_ != 0 && since_ns > kLongPassNs) stopped_ns_ += since_ns;
  last_pass_ns_ = now_ns;
}

void Drainer::report_open_calls(uint64_t now_ns) {
  if (settings_.hang_ns == 0) return;
  for (auto& [cell, ring] : rings_) {
    report_open_calls(ring, awake_ns(now_ns));
    report_quiet(ring, awake_ns(now_ns));
  }
}

void Drainer::ask_stack(const Ring& ring, int32_t tid, uint64_t quiet_ticks) {
  if (stuck_ == nullptr) return;
  stuck_->ask({ring.process, state_->process(ring.cell).pid_here(), tid, quiet_ticks,
               is_in_call(ring, tid)});
}

/// One that was told.
bool Drainer::is_in_call(const Ring& ring, int32_t tid) {
  return std::any_of(ring.open_since.begin(), ring.open_since.end(), [&](const auto& entry) {
    return entry.second.is_told && static_cast<int32_t>(entry.second.call.tid) == tid;
  });
}

/// A process that records nothing hangs or computes: where it stands tells which.
void Drainer::report_quiet(Ring& ring, uint64_t now_ns) {
  if (ring.is_quiet || ring.last_record_ns == 0) return;
  if (now_ns - ring.last_record_ns < settings_.hang_ns) return;
  ring.is_quiet = true;
  const int32_t pid = state_->process(ring.cell).pid;
  ask_stack(ring, pid, ring.last_record_ticks);
  uint32_t count = 1;
  for (uint32_t slot = kMainThreadSlot; slot < ring.reader->slots_used(); ++slot) {
    const int32_t tid = ring.reader->tid(slot);
    if (tid == pid || tid == 0 || ++count > kMaxQuietThreads) continue;
    ask_stack(ring, tid, ring.last_record_ticks);
  }
}

/// The time is the agent's own since it first saw the call.
void Drainer::report_open_calls(Ring& ring, uint64_t now_ns) {
  for (uint32_t slot = kMainThreadSlot; slot < ring.reader->slots_used(); ++slot) {
    const std::optional<ring::OpenCall> call = ring.reader->open_call(slot);
    if (!call) {
      ring.open_since.erase(slot);
      continue;
    }
    OpenSince& since = ring.open_since[slot];
    if (since.call.start_ticks != call->start_ticks) since = {*call, now_ns, false};
    if (since.is_told || now_ns - since.seen_ns < settings_.hang_ns) continue;
    since.is_told = true;
    OpenCallDefinition told{};
    told.process = ring.process;
    told.slot = static_cast<uint16_t>(slot);
    told.tid = since.call.tid;
    told.region = since.call.region;
    told.communicator = since.call.communicator;
    told.peer_tag = since.call.peer_tag;
    told.bytes = since.call.bytes;
    told.start_ticks = since.call.start_ticks;
    inbox_->define(ring.process, DefinitionType::kOpenCall, told);
    ask_stack(ring, since.call.tid, 0);
  }
}

}  // namespace aon::agent
