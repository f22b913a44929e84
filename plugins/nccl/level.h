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
/// The budget may lower the level while the program runs, by the mode word of kNcclProxySite
/// (aon/nccl.h), and raise it again. NCCL 2.31 and later does not survive that with the channels of
/// kernels: there gpu is the lowest.
/// Thread: any.   Cost: none.
#pragma once

#include "nccl/interface.h"

namespace aon::nccl {

constexpr char kLevelVariable[] = "AON_NCCL_LEVEL";

enum class Level : uint32_t { kOff = 0, kApi, kGpu, kNet, kStep };

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

/// The mode word that stands for a level, and the level of a mode word, at most `wanted`.
uint32_t mode_of(Level level);
Level level_of_mode(uint32_t mode, Level wanted, int version);

}  // namespace aon::nccl
