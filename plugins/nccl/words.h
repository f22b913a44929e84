/// NCCL's words for functions, types, algorithms and protocols -> ours. Version 1 has numbers for
/// them.   Thread: any.   Cost: a few ns, no hash.
#pragma once

#include <aon/annotation.h>
#include <aon/nccl.h>

#include <cstdint>

namespace aon::nccl {

enum class Function : uint8_t {
  kBroadcast = 0,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kSendRecv,
  kSend,
  kRecv,
  kAlltoAll,
  kGather,
  kScatter,
  kOther,
};
constexpr uint32_t kFunctionCount = 12;

/// Of "AllReduce" and the like; null and others are kOther.
Function function_of(const char* name);
NcclType type_of(const char* name);  ///< of "ncclFloat32"
NcclAlgorithm algorithm_of(const char* name);
NcclProtocol protocol_of(const char* name);

// Of version 1's numbers.
Function function_at(uint8_t number);
NcclType type_at(uint8_t number);
NcclAlgorithm algorithm_at(uint8_t number);
NcclProtocol protocol_at(uint8_t number);

/// Bytes of one element; an unknown type counts as 1 (NCCL has no word for uint8).
uint32_t type_bytes(NcclType type);

/// Region of a function: "ncclAllReduce".
const Annotation* region_of(Function function);
/// Region of the time in which a group is launched.
const Annotation* group_region();

/// Makes the regions known to the process.   Thread: any; locks.   Signal: no.
void define_regions();

}  // namespace aon::nccl
