#include "cupti/gaps.h"

#include <aon/definition.h>
#include <aon/device.h>
#include <aon/writer.h>

#include <atomic>

#include "cupti/span.h"
#include "cupti/state.h"

namespace aon::cupti {
namespace {

constexpr char kTimeline[] = "GPU work not recorded";

std::atomic<bool> g_is_defined{false};

/// What AON waits for in exit() is no time of the program, unless other threads of it go on.
uint64_t until_exit(uint64_t end) {
  // pairs with cupti:exit
  const uint64_t exit_ticks = shared().exit_ticks.load(std::memory_order_acquire);
  const bool goes_on = shared().last_request_ns.load(std::memory_order_relaxed) >
                       shared().exit_ns.load(std::memory_order_relaxed);
  return exit_ticks == 0 || goes_on || end < exit_ticks ? end : exit_ticks;
}

}  // namespace

void write_gap(const char* name, uint64_t start, uint64_t end) {
  Writer* w = attached_writer();
  end = until_exit(end);
  if (w == nullptr || end <= start) return;
  if (!g_is_defined.exchange(true, std::memory_order_relaxed)) {
    const DeviceStreamDefinition stream = {kUnrecordedStream, kNoDevice, 0, 0};
    aon_define(static_cast<uint32_t>(DefinitionType::kDeviceStream), &stream, sizeof stream,
               kTimeline, sizeof kTimeline);
  }
  const uint32_t region = aon_intern_region(name, static_cast<uint8_t>(RegionRole::kFunction),
                                            static_cast<uint8_t>(Paradigm::kCuda));
  Work work = {};
  work.operation = DeviceOperation::kOther;
  write_span(w, {region, kUnrecordedStream}, work, start, end);
}

}  // namespace aon::cupti
