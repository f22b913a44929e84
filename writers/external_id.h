/// An external correlation id (aon/external_id.h) as an event: a kDeviceWork of no duration before
/// that of its call.
/// Thread: any.   Cost: a few stores or loads.
#pragma once

#include <aon/external_id.h>

#include <optional>

#include "writers/writer.h"

namespace aon::writers {

struct ExternalId {
  ExternalKind kind;
  uint64_t id;
};

/// `event` is a kDeviceWork.
inline void set_external_id(const ExternalId& id, Event* event) {
  event->peer = static_cast<int32_t>(kExternalIdOperation);
  event->communicator = static_cast<uint32_t>(id.kind);
  event->bytes = id.id;
}

/// Of a kDeviceWork that is none: nothing.
inline std::optional<ExternalId> external_id_of(const Event& event) {
  if (event.device_operation() != kExternalIdOperation) return std::nullopt;
  return ExternalId{static_cast<ExternalKind>(event.communicator), event.bytes};
}

}  // namespace aon::writers
