#include "cupti/emitter.h"

#include <aon/definition.h>
#include <aon/pause.h>
#include <aon/writer.h>
#include <string.h>

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

/// The words of aon/device.h, straight into the record: an array between would be stored by word
/// and loaded by two, which waits for the stores.
void fill_words(const Work& work, uint64_t* words) {
  words[0] = uint64_t{work.correlation} | static_cast<uint64_t>(work.operation) << 32;
  words[1] = uint64_t{work.graph} | uint64_t{work.graph_node} << 32;
  words[2] = uint64_t{work.blocks} | uint64_t{work.threads} << 32;
  words[3] = static_cast<uint64_t>(work.from) | static_cast<uint64_t>(work.to) << 8 |
             uint64_t{work.shared_bytes} << 32;
}

}  // namespace

uint32_t Emitter::region_of_call(const Work& work) {
  if (work.function >= kFunctions) return names_.id_of("[CUDA call]");
  uint32_t& region = calls_[work.is_driver_call ? 0 : 1][work.function];
  if (region != 0) return region;
  const char* name = nullptr;
  const int32_t domain = work.is_driver_call ? kDriverDomain : kRuntimeDomain;
  if (cupti_->get_callback_name == nullptr ||
      cupti_->get_callback_name(domain, work.function, &name) != kSuccess || name == nullptr) {
    return region = names_.id_of("[CUDA call]");
  }
  char text[kMaxCallName + 1];
  const size_t bytes = length_without_version(name, work.is_driver_call);
  memcpy(text, name, bytes);
  text[bytes] = '\0';
  region = aon_intern_region(text, static_cast<uint8_t>(RegionRole::kFunction),
                             static_cast<uint8_t>(Paradigm::kCuda));
  return region;
}

uint32_t Emitter::region_of(const Work& work) {
  if (work.row == Row::kCalls) return region_of_call(work);
  return names_.id_of(work.name != nullptr ? work.name : work.label);
}

void Emitter::put(const Work& work) {
  const uint64_t start = clock_.to_ticks(work.start_ns);
  if (AON_UNLIKELY(aon_was_paused(start))) {
    leave_out(work, start);
  } else {
    put_at(work, start, clock_.to_ticks(work.end_ns));
  }
}

/// Work far from the rest is of another gap.
void Emitter::leave_out(const Work& work, uint64_t start) {
  if (work.row != Row::kStream) return;
  if (pause_end_ != 0 && work.start_ns > pause_end_ns_ + kPauseDistanceNs) tell_pause();
  const uint64_t end = clock_.to_ticks(work.end_ns);
  if (pause_end_ == 0 || start < pause_start_) pause_start_ = start;
  if (end <= pause_end_) return;
  pause_end_ = end;
  pause_end_ns_ = work.end_ns;
}

void Emitter::tell_pause() {
  if (pause_end_ == 0) return;
  const uint64_t end = pause_end_;
  pause_end_ = 0;
  put_gap(kGapOfWork, pause_start_, end);
}

void Emitter::put_gap(const char* label, uint64_t start, uint64_t end) {
  Work work = {};
  work.row = Row::kGaps;
  work.operation = DeviceOperation::kOther;
  work.label = label;
  put_at(work, start, end);
}

void Emitter::put_at(const Work& work, uint64_t start, uint64_t end) {
  const uint32_t region = region_of(work);
  const uint32_t stream = streams_.id_of(work);
  Writer* w = attached_writer();
  if (w == nullptr) return;
  const uint64_t duration = end > start ? end - start : 0;
  const bool is_wide = duration >> 32 != 0;
  const uint32_t slots = is_wide ? 3 : 2;
  emit(w, slots, is_counted(RecordKind::kDeviceSpan), end, [&](char* at) {
    auto* head = reinterpret_cast<RecordHead*>(at);
    *head = RecordHead{start,
                       static_cast<uint32_t>(duration),
                       RecordKind::kDeviceSpan,
                       static_cast<uint8_t>(slots),
                       static_cast<uint16_t>(is_wide ? kWideDuration : 0),
                       region,
                       stream,
                       work.bytes};
    auto* out = reinterpret_cast<uint64_t*>(head + 1);
    fill_words(work, out);
    if (!is_wide) return;
    for (uint32_t i = 4; i < 7; ++i) out[i] = 0;
    out[7] = duration;
  });
}

}  // namespace aon::cupti
