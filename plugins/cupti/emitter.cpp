#include "cupti/emitter.h"

#include <aon/definition.h>
#include <string.h>

#include "cupti/gaps.h"

namespace aon::cupti {
namespace {

constexpr size_t kMaxCallName = 128;
constexpr uint64_t kPauseDistanceNs = 50'000'000;

/// Length of "cudaMalloc" in "cudaMalloc_v3020"; a "cuMemAlloc_v2" is a function of that name.
size_t length_without_version(const char* name, bool is_driver_call) {
  const size_t bytes = strnlen(name, kMaxCallName);
  size_t at = bytes;
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  const bool has_version = at < bytes && at > 2 && name[at - 1] == 'v' && name[at - 2] == '_';
  return has_version && !is_driver_call ? at - 2 : bytes;
}

}  // namespace

uint32_t Emitter::region_of_unknown_call() { return names_.id_of("[CUDA call]"); }

uint32_t Emitter::find_call(bool is_driver_call, uint32_t function) {
  uint32_t& region = calls_[is_driver_call ? 0 : 1][function];
  const char* name = nullptr;
  const int32_t domain = is_driver_call ? kDriverDomain : kRuntimeDomain;
  if (cupti_->get_callback_name == nullptr ||
      cupti_->get_callback_name(domain, function, &name) != kSuccess || name == nullptr) {
    return region = region_of_unknown_call();
  }
  char text[kMaxCallName + 1];
  const size_t bytes = length_without_version(name, is_driver_call);
  memcpy(text, name, bytes);
  text[bytes] = '\0';
  region = aon_intern_region(text, static_cast<uint8_t>(RegionRole::kFunction),
                             static_cast<uint8_t>(Paradigm::kCuda));
  return region;
}

void Emitter::put(const ExternalId& id, uint32_t thread, uint64_t start) {
  Work work = {};
  work.label = "[CUDA external correlation id]";
  work.row = Row::kCalls;
  work.operation = kExternalIdOperation;
  work.stream = thread;
  work.correlation = id.correlation;
  work.bytes = id.id;
  work.grid = static_cast<uint32_t>(id.kind);
  Writer* w = attached_writer();
  if (w == nullptr) return;
  write_span(w, {names_.id_of(work.label), streams_.id_of(work)}, work, start, start);
}

/// Work far from the rest is of another gap.
void Emitter::leave_out(Row row, uint64_t start, uint64_t start_ns, uint64_t end_ns) {
  if (row != Row::kStream) return;
  if (pause_end_ != 0 && start_ns > pause_end_ns_ + kPauseDistanceNs) tell_pause();
  const uint64_t end = clock_.to_ticks(end_ns);
  if (pause_end_ == 0 || start < pause_start_) pause_start_ = start;
  if (end <= pause_end_) return;
  pause_end_ = end;
  pause_end_ns_ = end_ns;
}

void Emitter::tell_pause() {
  if (pause_end_ == 0) return;
  const uint64_t end = pause_end_;
  pause_end_ = 0;
  write_gap(GapCause::kPause, pause_start_, end);
}

}  // namespace aon::cupti
