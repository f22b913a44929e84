// Copies of devices as one-sided communication (device_windows.h), and work that was left out.

#include "writers/external_id.h"
#include "writers/otf2/device_windows.h"
#include "writers/otf2/events.h"

namespace aon::writers::otf2 {
namespace {

constexpr uint32_t kHostRank = 0;

bool is_of_host(DeviceMemory memory) {
  return memory == DeviceMemory::kPageable || memory == DeviceMemory::kPinned;
}

}  // namespace

void EventEncoder::set_device(uint32_t rank_in_window) {
  is_device_ = true;
  own_rank_ = rank_in_window;
}

/// Behind the Enter of the copy.
OTF2_ErrorCode EventEncoder::begin_copy(uint64_t time_ns) {
  const Event copy = *std::exchange(copy_, std::nullopt);
  const bool is_from_host = is_of_host(copy.device_from());
  const bool is_to_host = is_of_host(copy.device_to());
  open_copies_.back() = ++copy_count_;
  if (is_to_host && !is_from_host)
    return OTF2_EvtWriter_RmaPut(file_, nullptr, time_ns, kDeviceWindow, kHostRank, copy.bytes,
                                 copy_count_);
  const uint32_t remote = is_from_host ? kHostRank : own_rank_;
  return OTF2_EvtWriter_RmaGet(file_, nullptr, time_ns, kDeviceWindow, remote, copy.bytes,
                               copy_count_);
}

OTF2_ErrorCode EventEncoder::enter_device(const Event& event) {
  open_copies_.push_back(0);
  const OTF2_ErrorCode code = enter(event);
  return code == OTF2_SUCCESS && copy_ ? begin_copy(event.time_ns) : code;
}

OTF2_ErrorCode EventEncoder::leave_device(const Event& event) {
  uint64_t copy = 0;
  if (!open_copies_.empty()) {
    copy = open_copies_.back();
    open_copies_.pop_back();
  }
  if (copy != 0) {
    const OTF2_ErrorCode code =
        OTF2_EvtWriter_RmaOpCompleteBlocking(file_, nullptr, event.time_ns, kDeviceWindow, copy);
    if (code != OTF2_SUCCESS) return code;
  }
  return leave(event);
}

/// What a region is of: of a stream of a device its kDeviceWork comes first.
OTF2_ErrorCode EventEncoder::region(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
      return is_device_ ? enter_device(event) : enter(event);
    case EventKind::kLeave:
      return is_device_ ? leave_device(event) : leave(event);
    case EventKind::kDeviceGap:
      return device_gap(event);
    default:  // the Enter of work has what else the archive shows, but for copies
      if (const auto id = external_id_of(event); event.kind == EventKind::kDeviceWork && id) {
        external_ids_.push_back(*id);
        return OTF2_SUCCESS;
      }
      // A wait of the host has the id of its call, too, and is no work of a device.
      if (event.kind != EventKind::kDeviceWork ||
          event.device_operation() != DeviceOperation::kSynchronize)
        correlation_ = event.device_correlation();
      if (is_device_ && event.device_operation() == DeviceOperation::kCopy) copy_ = event;
      return OTF2_SUCCESS;
  }
}

OTF2_ErrorCode EventEncoder::device_gap(const Event& event) {
  if (event.bytes == 0) return OTF2_SUCCESS;
  const uint32_t region = lost_region(static_cast<uint32_t>(LossReason::kEvictedByCap));
  OTF2_AttributeList_AddUint64(attributes_.get(), kLostCount, event.bytes);
  const OTF2_ErrorCode code = put_enter(event.time_ns, region, attributes_.get());
  if (code != OTF2_SUCCESS) return code;
  return put_leave(event.time_ns + event.bytes_received, region, nullptr);
}

}  // namespace aon::writers::otf2
