/// The ring files of processes that found no agent, and whose they are.
///
/// A process that AON reached by a TaskProlog writes into the folder that was asked for. Where that
/// is another launch's, its own launch has DIR.N instead, and the ring's mark
/// (core/runtime/launch_mark.h) tells them apart:
///
/// | mark of the ring                       | in DIR                        | in DIR.N            |
/// |----------------------------------------|-------------------------------|---------------------|
/// | 0, or DIR has no launch, nor has DIR.N | DIR's                         |                     |
/// | that of DIR                            | DIR's                         |                     |
/// | that of DIR.N                          | left there, told              | taken from DIR      |
/// | that of no folder                      | left there, told              |                     |
///
/// Nothing is looked for in a folder of another user, or in one that others may write.
/// Thread: one.   Cost: one page of each ring file is read.
#pragma once

#include <filesystem>
#include <vector>

namespace aon::writers {

struct StrayRing {
  std::filesystem::path file;
  std::filesystem::path launch;  ///< folder of its launch; empty where there is none
};

struct LeftoverRings {
  std::vector<std::filesystem::path> own;  ///< of this launch, wherever they are
  std::vector<StrayRing> strays;           ///< of other launches, in this folder
};

/// The ring files of the job `folder` that are not converted.
LeftoverRings find_leftover_rings(const std::filesystem::path& folder);

/// What the user is told of a ring of another launch.
std::string describe(const StrayRing& stray);

}  // namespace aon::writers
