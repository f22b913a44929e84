#include "cupti/gaps.h"

#include <aon/definition.h>
#include <aon/writer.h>

#include <atomic>

#include "cupti/span.h"

namespace aon::cupti {
namespace {

/// Those of work count from 1 on (StreamIds), far fewer.
constexpr uint32_t kGapStream = 0xffff;
constexpr char kTimeline[] = "GPU work not recorded";

std::atomic<bool> g_is_defined{false};

}  // namespace

void write_gap(const char* name, uint64_t start, uint64_t end) {
  Writer* w = attached_writer();
  if (w == nullptr || end <= start) return;
  if (!g_is_defined.exchange(true, std::memory_order_relaxed)) {
    const DeviceStreamDefinition stream = {kGapStream, kNoDevice, 0, 0};
    aon_define(static_cast<uint32_t>(DefinitionType::kDeviceStream), &stream, sizeof stream,
               kTimeline, sizeof kTimeline);
  }
  const uint32_t region = aon_intern_region(name, static_cast<uint8_t>(RegionRole::kFunction),
                                            static_cast<uint8_t>(Paradigm::kCuda));
  Work work = {};
  work.operation = DeviceOperation::kOther;
  write_span(w, {region, kGapStream}, work, start, end);
}

}  // namespace aon::cupti
