/// What a text of NCCL's calls to a profiler plugin needs to know of descriptors: how long they
/// are, and where they point to strings. call_log.cpp writes such texts, replay.cpp reads them:
///
///     nccl-calls VERSION
///     NS THREAD init CONTEXT ID MASK NODES RANKS RANK NAME|-
///     NS THREAD start HANDLE CONTEXT PARENT BYTES [OFFSET=TEXT ...]
///     NS THREAD stop HANDLE
///     NS THREAD state HANDLE STATE BYTES|-
///     NS THREAD finalize CONTEXT
///
/// One line per call, in the order in which they began. NS: since the first one. THREAD, CONTEXT,
/// HANDLE, PARENT: small numbers, 0 none; handles that the plugin did not make are `?`. BYTES are
/// hexadecimal; pointers to parents and strings are zeros in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fake_nccl/events.h"

namespace aon::test::nccl {

/// Bytes of a descriptor up to the last field that a plugin reads.
constexpr size_t descriptor_bytes(int version) {
  constexpr size_t kBytes[8] = {0, 112, 128, 120, 104, 104, 104, 104};
  return kBytes[version];
}
constexpr size_t kParentOffset = 8;
constexpr size_t kProcessOffset = 24;  ///< of a ProxyOp
constexpr size_t kStateBytes = 8;

inline uint64_t type_of(int version, const unsigned char* descriptor) {
  uint64_t type = 0;
  std::memcpy(&type, descriptor, version <= 4 ? 1 : 8);
  return type;
}

inline std::vector<int> string_offsets(int version, uint64_t type) {
  const CollOffsets& coll = kCollOffsets[version];
  const P2pOffsets& p2p = kP2pOffsets[version];
  std::vector<int> offsets;
  if (version <= 3 && (type == kColl || type == kP2p)) offsets.push_back(24);  // communicator
  if (type == kCollApi || type == kP2pApi) return {24, 40};
  if (version == 1) return offsets;  // numbers, later strings
  if (type == kColl) {
    for (const int one : {coll.function, coll.type, coll.algorithm, coll.protocol})
      offsets.push_back(one);
  }
  if (type == kCeColl) offsets = {coll.function, coll.type};
  if (type == kP2p) {
    for (const int one : {p2p.function, p2p.type}) offsets.push_back(one);
  }
  return offsets;
}

}  // namespace aon::test::nccl
