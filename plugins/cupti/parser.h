/// One record of CUPTI -> what we want of it. No state and no clock: times stay CUPTI's.
/// Thread: any.   Signal: safe.   Cost: about 5 ns per record.
#pragma once

#include <aon/device.h>

#include "cupti/calls.h"
#include "cupti/external_ids.h"
#include "cupti/interface.h"
#include "cupti/quirks.h"

namespace aon::cupti {

/// Whose timeline a piece of work belongs to.
enum class Row : uint8_t {
  kStream = 0,       ///< of a device, context and stream
  kCalls,            ///< of a thread of the program: its calls of CUDA; `stream` is its id
  kSynchronization,  ///< what the host waited for in a context; `stream`: the thread that waited,
                     ///< 0 unknown, which the record of its call tells (CallThreads)
  kOverhead,         ///< what CUPTI itself cost; `stream` is the thread, 0 unknown
};
constexpr uint32_t kRowCount = 4;

struct alignas(16) Work {
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t bytes;
  const char* name;  ///< of a kernel, CUPTI's own string; null: `label` or `function` tells
  const char* label;
  uint32_t function;  ///< of a call: its id in its domain
  bool is_driver_call;
  bool is_cost_of_records;  ///< overhead of CUPTI that grows with the records
  Row row;
  DeviceOperation operation;
  DeviceMemory from;
  DeviceMemory to;
  uint8_t registers;  ///< of a kernel's thread; 255: so many or more
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t graph;
  uint32_t graph_node;
  uint32_t block;  ///< pack_block(); 0: no kernel
  uint64_t grid;   ///< pack_grid()
  uint32_t shared_bytes;
};

enum class Parsed : uint8_t {
  kWork = 0,
  kIgnored,    ///< of no interest: a kind that we did not ask for
  kZeroTimes,  ///< work whose times the device lost
  kDamaged,    ///< ends before it begins
};

inline Kind kind_of(const uint8_t* record) {
  Kind kind;
  __builtin_memcpy(&kind, record, sizeof kind);
  return kind;
}

/// A graph, a node of one, or the call that launched it.
bool is_of_graph(const Work& work);
/// Of work whose row is kCalls.
Does does_of(const Work& call);
/// Of a call that failed, `call` its record: an end of a capture that had been broken, or that
/// leaves streams unjoined, is its end all the same.
bool is_end_of_capture(const uint8_t* call);

/// Of a record of kExternalCorrelation. False: it is of no call, or of a kind that is not known.
bool parse_external_id(const uint8_t* record, ExternalId* id);

/// Reads the record at `record`, which cuptiActivityGetNextRecord() gave.
Parsed parse(const uint8_t* record, const Quirks& quirks, Work* work);

}  // namespace aon::cupti
