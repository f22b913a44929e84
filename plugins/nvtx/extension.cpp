// What the payload extension of NVTX calls, and the entry that puts it into the extension's table.
#include "nvtx/extension.h"

#include <aon/crash.h>

#include "nvtx/payload.h"
#include "nvtx/ranges.h"
#include "nvtx/remarks.h"
#include "nvtx/schemas.h"

namespace aon::nvtx {
namespace {

void mark(const Domain* domain, const PayloadData* payloads, size_t count) {
  const Seen seen = look_at_payloads(domain, {}, payloads, count);
  put_mark(seen.name, seen.value.type, seen.value.bits);
}
int push(const Domain* domain, const PayloadData* payloads, size_t count) {
  const Seen seen = look_at_payloads(domain, {}, payloads, count);
  return push_range(domain, seen.name, seen.value.type, seen.value.bits);
}
uint64_t start(const Domain* domain, const PayloadData* payloads, size_t count) {
  const Seen seen = look_at_payloads(domain, {}, payloads, count);
  return start_range(seen.name, seen.value.type, seen.value.bits);
}
// What comes with an end could only rename a range that has begun.
int pop(const Domain* domain, const PayloadData*, size_t) { return pop_range(domain); }
void end(const Domain*, uint64_t number, const PayloadData*, size_t) { end_range(number); }

uint8_t is_enabled(const Domain*) { return 1; }

/// The places of a table that it has.
class Slots {
 public:
  explicit Slots(const ExtensionModule& module) {
    if (module.segment_count == 0 || module.segments == nullptr) return;
    const ExtensionSegment& first = module.segments[0];
    if (first.slots == nullptr) return;
    slots_ = first.slots;
    count_ = first.slot_count;
  }

  template <class F>
  void set(Payload place, F* function) const {
    const size_t at = static_cast<size_t>(place);
    if (at < count_) slots_[at] = reinterpret_cast<intptr_t>(function);
  }

 private:
  intptr_t* slots_ = nullptr;
  size_t count_ = 0;
};

void fill(const Slots& slots) {
  slots.set(Payload::kSchemaRegister, register_schema);
  slots.set(Payload::kEnumRegister, register_enum);
  slots.set(Payload::kMark, mark);
  slots.set(Payload::kRangePush, push);
  slots.set(Payload::kRangePop, pop);
  slots.set(Payload::kRangeStart, start);
  slots.set(Payload::kRangeEnd, end);
  slots.set(Payload::kDomainIsEnabled, is_enabled);
}

}  // namespace
}  // namespace aon::nvtx

/// Called by each extension at its first use in each library that contains it. 1, also if we take
/// nothing: after a 0 the program would be told that its domains are not enabled.
// NOLINTNEXTLINE(readability-identifier-naming): NVTX's name
extern "C" AON_EXPORT int InitializeInjectionNvtxExtension(aon::nvtx::ExtensionModule* module) {
  using namespace aon::nvtx;
  if (module == nullptr) return 0;
  if (module->struct_bytes < sizeof *module || module->id != ExtensionId::kPayload) return 1;
  if (module->version < kFirstPayloadVersion || module->version >= kNextPayloadVersion) {
    tell_unknown_extension();
    return 1;
  }
  aon::aon_follow_crashes();
  fill(Slots(*module));
  return 1;
}
