/// External correlation ids: what the program, or a framework in it, calls its work. It gives an id
/// to its calls of CUDA by cuptiActivityPushExternalCorrelationId(). Each id of a call is a
/// kDeviceSpan record (device.h) beside the call's own:
///
/// | field    | content                                                                         |
/// |----------|---------------------------------------------------------------------------------|
/// | start    | that of the call's record; no duration                                          |
/// | a32      | the stream of the call's record                                                 |
/// | a64      | the id                                                                          |
/// | word 0   | low half: correlation id of the call; byte 4: kExternalIdOperation              |
/// | word 2   | ExternalKind                                                                    |
///
/// A reader that knows none takes it for a call without a duration.
/// Depends on device.h only.
#pragma once

#include <aon/device.h>

#include <cstdint>

namespace aon {

/// CUpti_ExternalCorrelationKind, whose 0 is none.
enum class ExternalKind : uint32_t { kUnknown = 1, kOpenAcc, kCustom0, kCustom1, kCustom2 };
constexpr uint32_t kExternalKindCount = 6;

/// Far from those of work.
constexpr auto kExternalIdOperation = static_cast<DeviceOperation>(0x40);

constexpr bool is_external_kind(uint64_t kind) { return kind != 0 && kind < kExternalKindCount; }

/// As CUPTI calls it.
constexpr const char* external_kind_name(ExternalKind kind) {
  constexpr const char* kNames[] = {"", "UNKNOWN", "OPENACC", "CUSTOM0", "CUSTOM1", "CUSTOM2"};
  static_assert(sizeof kNames / sizeof kNames[0] == kExternalKindCount);
  return kNames[static_cast<uint32_t>(kind)];
}

}  // namespace aon
