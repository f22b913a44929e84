// Operations of NCCL: no call of the thread whose record it is, so no order of time and no nesting.

#include "writers/assemble/event_order.h"
#include "writers/assemble/nccl_record.h"

namespace aon::writers {

void EventOrder::emit_nccl(const Record& record) {
  // Its place is where the thread is: that moves nothing, and nothing is counted as moved.
  if (is_nccl_proxy(record.head)) {
    Event& event = append(EventKind::kNcclProxy, last_ns_, known_region(record.head.id));
    nccl_proxy_.push_back(read_nccl_proxy(record, clock_));
    event.request = reinterpret_cast<uint64_t>(&nccl_proxy_.back());
    return;
  }
  if (is_nccl_overwritten(record.head)) return;  // has been heeded (nccl_overwritten.h)
  if (!is_nccl_operation(record.head)) {
    ++outcome_->unmatched_count;
    return;
  }
  Event& event = append(EventKind::kNcclCall, last_ns_, known_region(record.head.id));
  NcclOperation& operation = nccl_.emplace_back(read_nccl_operation(record, clock_));
  operation.region = event.region;
  event.request = reinterpret_cast<uint64_t>(&operation);
}

}  // namespace aon::writers
