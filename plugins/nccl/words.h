/// NCCL's words for functions, types, algorithms and protocols -> ours. Version 1 has numbers for
/// them.   Thread: any.   Cost: a few ns, no hash.
#pragma once

#include <aon/annotation.h>
#include <aon/nccl.h>

#include <atomic>
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

/// The last word of each kind, and what it meant: address and value in one. NCCL's words are
/// constants of its library.
struct WordCache {
  std::atomic<uint64_t> function;
  std::atomic<uint64_t> type;
  std::atomic<uint64_t> algorithm;
  std::atomic<uint64_t> protocol;
};

/// `find(name)` through one of them.
template <auto find>
inline auto look_up(std::atomic<uint64_t>& cache, const char* name) {
  using Word = decltype(find(name));
  const uint64_t key = reinterpret_cast<uint64_t>(name) << 8;
  const uint64_t known = cache.load(std::memory_order_relaxed);
  if ((known & ~uint64_t{0xff}) == key && key != 0) return static_cast<Word>(known & 0xff);
  const Word word = find(name);
  cache.store(key | static_cast<uint8_t>(word), std::memory_order_relaxed);
  return word;
}

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
