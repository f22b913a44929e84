// External correlation ids, which the program gives its calls, on their way to records.
#include <inttypes.h>
#include <stdio.h>

#include "cupti/drain.h"
#include "cupti/state.h"

namespace aon::cupti {

/// It has no time: that is its call's. One of a call that was left out is left out with it.
void Drain::take_external_id(const uint8_t* record) {
  records_ns_ += kOtherNs;
  ++counts_.all;
  ++counts_.calls;
  ExternalId id;
  if (!parse_external_id(record, &id)) {
    shared().missing.damaged.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!external_ids_.add(id)) return;
  const CallThreads::Call* call = call_threads_.find(id.correlation);
  if (call == nullptr) return;
  external_ids_.note_joined(id.correlation);
  if (call->start_ticks == 0) return;
  emitter_.put(id, call->thread, call->start_ticks);
  if (pace_.is_due()) rest();
}

void Drain::put_external_ids(uint32_t correlation, uint32_t thread, uint64_t start) {
  external_ids_.join(correlation, [&](const ExternalId& id) {
    if (start == 0) return;
    emitter_.put(id, thread, start);
    if (pace_.is_due()) rest();
  });
}

void Drain::tell_external_ids(bool is_end) {
  const uint64_t count = external_ids_.alone_count(is_end);
  if (count == alone_ids_told_ || (!is_end && count < 2 * alone_ids_told_)) return;
  alone_ids_told_ = count;
  char reason[128];
  snprintf(reason, sizeof reason,
           "%" PRIu64 " external correlation ids are of calls without a record", count);
  tell(Remark::kIds, ProviderState::kOn, reason, "");
}

}  // namespace aon::cupti
