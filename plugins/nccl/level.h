/// How much NCCL is asked to tell: AON_NCCL_LEVEL.
///
/// | level | events                                    | what it gives                            |
/// |-------|-------------------------------------------|------------------------------------------|
/// | api   | the calls, launches, Coll and P2p         | operations with host times; the default  |
/// | gpu   | and one per channel of each kernel        | begin and time on the GPU                |
/// | net   | and what the proxy does for an operation  | what goes to and comes from which peer   |
/// | step  | and its steps, and the network plugin's   | what it waits for: GPU, peer, network    |
/// | off   | none                                      |                                          |
///
/// While the program runs the user may change the level (`aon level`) and the budget lower it, by
/// the mode word of kNcclProxySite (aon/nccl_level.h). NCCL connects what channels need at the
/// first operation that asks for them, so a communicator need not have begun with them. NCCL 2.31
/// and later does not survive that channels are switched: what began at gpu stays there or above,
/// what began at api stays at api.
/// Thread: any.   Cost: none.
#pragma once

#include <aon/nccl_level.h>

#include "nccl/interface.h"

namespace aon::nccl {

constexpr char kLevelVariable[] = "AON_NCCL_LEVEL";

using Level = NcclLevel;

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

/// What a process that begins at `launch`, which is not off, may be given later.
NcclLimits limits_of(Level launch, int version, uint64_t shared_bytes);

/// The activation mask of a level.
int mask_of(Level level, int version);

/// The level of a mode word, within what is possible.
Level level_of_mode(uint32_t mode, const NcclLimits& limits);

}  // namespace aon::nccl
