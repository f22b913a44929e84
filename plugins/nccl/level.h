/// How much NCCL is asked to tell: AON_NCCL_LEVEL.
///
/// | level | events                                    | what it gives                            |
/// |-------|-------------------------------------------|------------------------------------------|
/// | api   | the calls, launches, Coll and P2p         | operations with host times; the default  |
/// | gpu   | and one per channel of each kernel        | begin and time on the GPU                |
/// | off   | none                                      |                                          |
///
/// `net` and `step` (NCCL's proxy) are taken as `gpu`, and the ledger says so.
/// Thread: any.   Cost: none.
#pragma once

#include "nccl/interface.h"

namespace aon::nccl {

constexpr char kLevelVariable[] = "AON_NCCL_LEVEL";

enum class Level : uint32_t { kOff = 0, kApi, kGpu };

/// Less memory for shared files than this, and NCCL itself dies at level gpu (PR #2326).
constexpr uint64_t kMinSharedBytes = uint64_t{512} << 20;

/// What was asked for, what becomes of it, and why that is less: two texts, "" when it is not.
struct LevelChoice {
  Level level;
  const char* reason;
  const char* remedy;
};

/// `text`: of the environment, may be null. `shared_bytes`: size of /dev/shm.
LevelChoice choose_level(const char* text, int version, uint64_t shared_bytes);

/// The activation mask of a level.
int mask_of(Level level, int version);

}  // namespace aon::nccl
