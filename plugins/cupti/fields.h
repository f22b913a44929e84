/// How fields of a record become those of Work: what parser.cpp and the loop over a buffer share.
/// Thread: any.   Signal: safe.   Cost: a few loads and stores each.
#pragma once

#include <string.h>

#include "cupti/parser.h"

namespace aon::cupti {

template <class T>
[[gnu::always_inline]] inline T field(const uint8_t* record, size_t offset) {
  T value;
  memcpy(&value, record + offset, sizeof value);
  return value;
}

inline void parse_shape(const uint8_t* record, Work* work) {
  const auto at = [&](size_t offset) { return field<uint32_t>(record, offset); };
  work->grid = pack_grid(at(kernel::kGrid), at(kernel::kGrid + 4), at(kernel::kGrid + 8));
  work->block = pack_block(at(kernel::kBlock), at(kernel::kBlock + 4), at(kernel::kBlock + 8));
  work->registers =
      static_cast<uint8_t>(at_most_bits(field<uint16_t>(record, kernel::kRegisters), 8));
  work->shared_bytes = at(kernel::kStaticShared) + at(kernel::kDynamicShared);
}

inline void parse_times(const uint8_t* record, size_t start, size_t end, Work* work) {
  work->start_ns = field<uint64_t>(record, start);
  work->end_ns = field<uint64_t>(record, end);
}

/// Device, context and stream stand together in all records of work.
inline void parse_place(const uint8_t* record, size_t device, Work* work) {
  work->device = field<uint32_t>(record, device);
  work->context = field<uint32_t>(record, device + 4);
  work->stream = field<uint32_t>(record, device + 8);
}

inline void parse_graph(const uint8_t* record, size_t node, size_t graph, const Quirks& quirks,
                        Work* work) {
  if (!quirks.has_graph_fields) return;
  work->graph_node = static_cast<uint32_t>(field<uint64_t>(record, node));
  work->graph = field<uint32_t>(record, graph);
}

/// Of the two kinds that come by the thousand: inlined into who reads them.
[[gnu::always_inline]] inline void parse_kernel(const uint8_t* record, const Quirks& quirks,
                                                Work* work) {
  work->operation = DeviceOperation::kKernel;
  parse_times(record, kernel::kStart, kernel::kEnd, work);
  parse_place(record, kernel::kDevice, work);
  parse_graph(record, kernel::kGraphNode, kernel::kGraph, quirks, work);
  work->name = field<const char*>(record, kernel::kName);
  if (work->name == nullptr) work->label = "[CUDA kernel]";
  work->correlation = field<uint32_t>(record, kernel::kCorrelation);
  parse_shape(record, work);
}

[[gnu::always_inline]] inline void parse_call(const uint8_t* record, bool is_driver, Work* work) {
  work->operation = DeviceOperation::kOther;
  work->row = Row::kCalls;
  work->is_driver_call = is_driver;
  work->function = field<uint32_t>(record, api::kFunction);
  parse_times(record, api::kStart, api::kEnd, work);
  work->stream = field<uint32_t>(record, api::kThread);
  work->correlation = field<uint32_t>(record, api::kCorrelation);
}

/// False: the device lost the times, or they are damaged; parse() tells which.
[[gnu::always_inline]] inline bool has_times(const Work& work) {
  return work.start_ns != 0 && work.end_ns >= work.start_ns;
}

}  // namespace aon::cupti
