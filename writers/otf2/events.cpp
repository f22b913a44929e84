#include "writers/otf2/events.h"

#include <algorithm>
#include <bit>

#include "writers/otf2/archive.h"
#include "writers/otf2/definitions.h"

namespace aon::writers::otf2 {
namespace {

constexpr OTF2_CollectiveOp kOperation[] = {
    OTF2_COLLECTIVE_OP_BARRIER,
    OTF2_COLLECTIVE_OP_BCAST,
    OTF2_COLLECTIVE_OP_GATHER,
    OTF2_COLLECTIVE_OP_GATHERV,
    OTF2_COLLECTIVE_OP_SCATTER,
    OTF2_COLLECTIVE_OP_SCATTERV,
    OTF2_COLLECTIVE_OP_ALLGATHER,
    OTF2_COLLECTIVE_OP_ALLGATHERV,
    OTF2_COLLECTIVE_OP_ALLTOALL,
    OTF2_COLLECTIVE_OP_ALLTOALLV,
    OTF2_COLLECTIVE_OP_ALLTOALLW,
    OTF2_COLLECTIVE_OP_ALLREDUCE,
    OTF2_COLLECTIVE_OP_REDUCE,
    OTF2_COLLECTIVE_OP_REDUCE_SCATTER,
    OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK,
    OTF2_COLLECTIVE_OP_SCAN,
    OTF2_COLLECTIVE_OP_EXSCAN,
    OTF2_COLLECTIVE_OP_CREATE_HANDLE,
    OTF2_COLLECTIVE_OP_DESTROY_HANDLE,
    OTF2_COLLECTIVE_OP_ALLTOALL,  // kOther: OTF2 has no such word
    OTF2_COLLECTIVE_OP_BARRIER,   // kSetInfo: nor one for this, which moves nothing
};
static_assert(std::size(kOperation) == static_cast<size_t>(CollectiveOperation::kSetInfo) + 1);

OTF2_CollectiveOp otf2_operation(CollectiveOperation operation) {
  const auto index = static_cast<size_t>(operation);
  return kOperation[std::min(index, std::size(kOperation) - 1)];
}

uint32_t otf2_root(int32_t root) {
  return root < 0 ? OTF2_COLLECTIVE_ROOT_NONE : static_cast<uint32_t>(root);
}

const char* kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::kEnter:
      return "write Enter";
    case EventKind::kLeave:
      return "write Leave";
    case EventKind::kSample:
      return "write Metric";
    case EventKind::kCollectiveEnd:
      return "write MpiCollectiveEnd";
    default:
      return "write an event";
  }
}

}  // namespace

EventEncoder::EventEncoder() : attributes_(OTF2_AttributeList_New()) {}

Status EventEncoder::write(std::span<const Event> events) {
  for (const Event& event : events) {
    if (event.kind == EventKind::kCounters) keep_counters(event);
    if (event.kind == EventKind::kOpenAtEnd) leave_is_open_ = true;
    if (event.kind == EventKind::kCut) leave_is_cut_ = true;
    const OTF2_ErrorCode code = write_one(event);
    if (code != OTF2_SUCCESS) return check(code, kind_name(event.kind));
  }
  return {};
}

Status EventEncoder::write_no_records(uint64_t start_ns, uint64_t end_ns) {
  OTF2_ErrorCode code = put_enter(start_ns, kNoRecordsRegion, nullptr);
  if (code == OTF2_SUCCESS) {
    code = put_leave(end_ns, kNoRecordsRegion, nullptr);
  }
  return check(code, "write Enter");
}

OTF2_ErrorCode EventEncoder::sample(const Event& event) {
  if (!samples_apart_) return write_sample(file_, event, metric_class(*model_, event.region));
  apart_.push_back(event);
  return OTF2_SUCCESS;
}

OTF2_ErrorCode EventEncoder::write_one(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kDeviceWork:
    case EventKind::kDeviceGap:
      return region(event);
    case EventKind::kSend:
    case EventKind::kReceive:
    case EventKind::kSendRequest:
    case EventKind::kSendComplete:
    case EventKind::kReceiveRequest:
    case EventKind::kReceiveComplete:
    case EventKind::kRequestCancelled:
      return message(event);
    case EventKind::kCollectiveBegin:
    case EventKind::kCollectiveEnd:
    case EventKind::kCollectiveRequest:
    case EventKind::kCollectiveComplete:
      return collective(event);
    case EventKind::kSample:
      return sample(event);
    case EventKind::kLostBegin:
    case EventKind::kLostEnd:
      return lost(event);
    case EventKind::kOpenAtEnd:       // kept by write()
    case EventKind::kCut:             // the same
    case EventKind::kCounters:        // the same
    case EventKind::kCallSample:      // has an archive of its own
    case EventKind::kNcclCall:        // its host side is there as regions
    case EventKind::kNcclProxy:       // has a table
    case EventKind::kForeignMessage:  // no location stands for its other end
    case EventKind::kNcclBegin:       // on timelines of their own (nccl_events.h)
    case EventKind::kNcclEnd:
    case EventKind::kIoChange:  // OTF2 has no such event: the region of the call is all
      break;
    case EventKind::kMark:
      return mark(event);
    case EventKind::kRmaCollectiveBegin:
    case EventKind::kRmaCollectiveEnd:
    case EventKind::kRmaWindowCreate:
    case EventKind::kRmaWindowDestroy:
    case EventKind::kRmaTransfer:
    case EventKind::kRmaLocalComplete:
    case EventKind::kRmaRequestComplete:
    case EventKind::kRmaRemoteComplete:
    case EventKind::kRmaGroupSync:
    case EventKind::kRmaLock:
    case EventKind::kRmaUnlock:
    case EventKind::kRmaSync:
      return rma(event);
    case EventKind::kIoOpen:
    case EventKind::kIoClose:
    case EventKind::kIoDelete:
    case EventKind::kIoSeek:
    case EventKind::kIoBegin:
    case EventKind::kIoIssued:
    case EventKind::kIoComplete:
    case EventKind::kIoCancelled:
      return io(event);
  }
  return OTF2_SUCCESS;
}

void EventEncoder::set_counters(std::vector<uint32_t> columns, size_t count) {
  columns_ = std::move(columns);
  counters_.assign(columns_.empty() ? 0 : count, OTF2_MetricValue{});
  counter_types_.assign(counters_.size(), OTF2_TYPE_UINT64);
}

void EventEncoder::keep_counters(const Event& event) {
  for (uint32_t i = 0; i < std::min<size_t>(event.region, columns_.size()); ++i) {
    if (columns_[i] < counters_.size()) counters_[columns_[i]].unsigned_int = event.counter(i);
  }
}

OTF2_ErrorCode EventEncoder::put_counters(uint64_t time_ns) {
  if (counters_.empty()) return OTF2_SUCCESS;
  return OTF2_EvtWriter_Metric(file_, nullptr, time_ns, kCounterClass,
                               static_cast<uint8_t>(counters_.size()), counter_types_.data(),
                               counters_.data());
}

OTF2_ErrorCode EventEncoder::put_enter(uint64_t time_ns, uint32_t region,
                                       OTF2_AttributeList* attributes) {
  const OTF2_ErrorCode code = put_counters(time_ns);
  if (code != OTF2_SUCCESS) return code;
  return OTF2_EvtWriter_Enter(file_, attributes, time_ns, region);
}

OTF2_ErrorCode EventEncoder::put_leave(uint64_t time_ns, uint32_t region,
                                       OTF2_AttributeList* attributes) {
  const OTF2_ErrorCode code = put_counters(time_ns);
  if (code != OTF2_SUCCESS) return code;
  return OTF2_EvtWriter_Leave(file_, attributes, time_ns, region);
}

OTF2_ErrorCode EventEncoder::message(const Event& event) {
  const uint32_t peer = static_cast<uint32_t>(event.peer);
  const uint32_t tag = static_cast<uint32_t>(event.tag);
  switch (event.kind) {
    case EventKind::kSend:
      return OTF2_EvtWriter_MpiSend(file_, nullptr, event.time_ns, peer, event.communicator, tag,
                                    event.bytes);
    case EventKind::kReceive:
      return OTF2_EvtWriter_MpiRecv(file_, nullptr, event.time_ns, peer, event.communicator, tag,
                                    event.bytes);
    case EventKind::kSendRequest:
      return OTF2_EvtWriter_MpiIsend(file_, nullptr, event.time_ns, peer, event.communicator, tag,
                                     event.bytes, event.request);
    case EventKind::kSendComplete:
      return OTF2_EvtWriter_MpiIsendComplete(file_, nullptr, event.time_ns, event.request);
    case EventKind::kReceiveRequest:
      return OTF2_EvtWriter_MpiIrecvRequest(file_, nullptr, event.time_ns, event.request);
    case EventKind::kReceiveComplete:
      return OTF2_EvtWriter_MpiIrecv(file_, nullptr, event.time_ns, peer, event.communicator, tag,
                                     event.bytes, event.request);
    case EventKind::kRequestCancelled:
      return OTF2_EvtWriter_MpiRequestCancelled(file_, nullptr, event.time_ns, event.request);
    default:
      return OTF2_SUCCESS;
  }
}

OTF2_ErrorCode EventEncoder::enter(const Event& event) {
  OTF2_AttributeList* attributes = nullptr;
  if (event.weight > 1) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint32(attributes, kWeight, event.weight);
  } else if (event.value_type() != ValueType::kNone) {
    attributes = attributes_.get();
    add_value(event.value_type(), event.bytes);
  }
  if (const uint32_t correlation = std::exchange(correlation_, 0); correlation != 0) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint32(attributes, kCorrelation, correlation);
  }
  for (const ExternalId& id : external_ids_) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint64(attributes, external_id_attribute(id.kind), id.id);
  }
  external_ids_.clear();
  return put_enter(event.time_ns, event.region, attributes);
}

/// Adds the value of an annotation to the list of attributes.
void EventEncoder::add_value(ValueType type, uint64_t value) {
  OTF2_AttributeList* attributes = attributes_.get();
  switch (type) {
    case ValueType::kUnsigned:
      OTF2_AttributeList_AddUint64(attributes, kValue, value);
      break;
    case ValueType::kSigned:
      OTF2_AttributeList_AddInt64(attributes, kSignedValue, static_cast<int64_t>(value));
      break;
    case ValueType::kReal:
      OTF2_AttributeList_AddDouble(attributes, kRealValue, std::bit_cast<double>(value));
      break;
    case ValueType::kStep:
      OTF2_AttributeList_AddInt64(attributes, kStepNumber, static_cast<int64_t>(value));
      break;
    default:
      break;
  }
}

OTF2_ErrorCode EventEncoder::leave(const Event& event) {
  OTF2_AttributeList* attributes = nullptr;
  if (leave_is_open_) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint8(attributes, kOpen, 1);
    leave_is_open_ = false;
  } else if (leave_is_cut_) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint8(attributes, kCutByLoss, 1);
    leave_is_cut_ = false;
  } else if ((event.flags & kFailed) != 0) {
    attributes = attributes_.get();
    OTF2_AttributeList_AddUint8(attributes, kErrored, 1);
  }
  return put_leave(event.time_ns, event.region, attributes);
}

OTF2_ErrorCode EventEncoder::mark(const Event& event) {
  if (event.value_type() == ValueType::kRangeStart) {
    OTF2_AttributeList_AddUint64(attributes_.get(), kRange, event.request);
    add_value(event.range_value_type(), event.bytes);
  } else if (event.value_type() == ValueType::kRangeEnd) {
    OTF2_AttributeList_AddUint64(attributes_.get(), kRange, event.request);
    OTF2_AttributeList_AddUint64(attributes_.get(), kDuration, event.bytes);
  } else {
    add_value(event.value_type(), event.bytes);
  }
  const OTF2_ErrorCode code = put_enter(event.time_ns, event.region, attributes_.get());
  if (code != OTF2_SUCCESS) return code;
  return put_leave(event.time_ns, event.region, nullptr);
}

OTF2_ErrorCode EventEncoder::lost(const Event& event) {
  const uint32_t reason =
      event.region < kLossReasonCount ? event.region : static_cast<uint32_t>(LossReason::kDamaged);
  if (event.kind == EventKind::kLostEnd) {
    return put_leave(event.time_ns, lost_region(reason), nullptr);
  }
  OTF2_AttributeList_AddUint64(attributes_.get(), kLostCount, event.bytes);
  return put_enter(event.time_ns, lost_region(reason), attributes_.get());
}

OTF2_ErrorCode EventEncoder::collective(const Event& event) {
  switch (event.kind) {
    case EventKind::kCollectiveBegin:
      return OTF2_EvtWriter_MpiCollectiveBegin(file_, nullptr, event.time_ns);
    case EventKind::kCollectiveRequest:
      return OTF2_EvtWriter_NonBlockingCollectiveRequest(file_, nullptr, event.time_ns,
                                                         event.request);
    case EventKind::kCollectiveComplete:
      return OTF2_EvtWriter_NonBlockingCollectiveComplete(
          file_, nullptr, event.time_ns, otf2_operation(event.operation), event.communicator,
          otf2_root(event.peer), event.bytes, event.bytes_received, event.request);
    default:
      return OTF2_EvtWriter_MpiCollectiveEnd(
          file_, nullptr, event.time_ns, otf2_operation(event.operation), event.communicator,
          otf2_root(event.peer), event.bytes, event.bytes_received);
  }
}

OTF2_ErrorCode EventEncoder::write_sample(OTF2_EvtWriter* file, const Event& event,
                                          uint32_t metric_class) {
  const OTF2_Type type = OTF2_TYPE_DOUBLE;
  OTF2_MetricValue value;
  static_assert(sizeof(value) == sizeof(event.bytes));
  value.unsigned_int = event.bytes;  // the record holds the double's bits
  return OTF2_EvtWriter_Metric(file, nullptr, event.time_ns, metric_class, 1, &type, &value);
}

}  // namespace aon::writers::otf2
