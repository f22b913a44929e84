/// What an event tells of an operation, from the layouts of all versions.
/// Thread: any.   Signal: no.   Cost: a few ns.   Errors: none; unknown words have a value.
#pragma once

#include "nccl/interface.h"
#include "nccl/words.h"

namespace aon::nccl {

/// What an event tells of an operation.
struct Facts {
  Function function = Function::kOther;
  NcclType type = NcclType::kUnknown;
  NcclAlgorithm algorithm = NcclAlgorithm::kUnknown;
  NcclProtocol protocol = NcclProtocol::kUnknown;
  uint8_t channels = 0;
  bool is_p2p = false;
  bool is_symmetric = false;  ///< told from version 7 on
  uint32_t flags = 0;
  int32_t peer = kNoPeer;
  uint64_t sequence = 0;
  uint64_t count = 0;
};

/// Of the calls of the program.
Facts of_coll_api(WordCache& words, const Descriptor* descriptor);
Facts of_p2p_api(WordCache& words, const Descriptor* descriptor);

/// Of what NCCL makes of them.
Facts of_coll(int version, WordCache& words, const Descriptor* descriptor);
Facts of_p2p(int version, WordCache& words, const Descriptor* descriptor);

/// A collective by copy engines: a CollEvent without channels, algorithm and protocol.
Facts of_copy_engines(WordCache& words, const Descriptor* descriptor);

template <class Text>
const Text& as(const Descriptor* descriptor) {
  return *reinterpret_cast<const Text*>(descriptor);
}

}  // namespace aon::nccl
