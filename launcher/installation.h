/// Where our own files are, found from the running program itself, so that a build tree, an
/// installed tree and a copied one work alike:
///
///     PREFIX/bin/aon-run                     PREFIX/bin/aon
///     PREFIX/bin/aon-agent  or PREFIX/libexec/aon/aon-agent
///     PREFIX/lib/libaon-mpi.so, libaon.so    (or lib64, lib/<architecture>)
///
/// Thread: any.   Cost: one readlink and a few access().
#pragma once

#include <string>

#include "core/base/result.h"

namespace aon::launcher {

constexpr char kMpiLibrary[] = "libaon-mpi.so";
constexpr char kRuntimeLibrary[] = "libaon.so";
constexpr char kCuptiFile[] = "libaon-cupti.so";
constexpr char kNvtxFile[] = "libaon-nvtx.so";
constexpr char kNcclFile[] = "libnccl-profiler-aon.so";

struct Installation {
  std::string library_dir;      ///< in a form that LD_PRELOAD can name
  std::string agent;            ///< path of aon-agent
  std::string mpi_library;      ///< path of libaon-mpi.so
  std::string runtime_library;  ///< path of libaon.so
  std::string cuda_injection;   ///< the following are empty when not installed
  std::string nvtx_injection;
  std::string nccl_plugin;
};

/// Errors: kNotFound with the path of the first file that is missing.
Result<Installation> find_installation();

}  // namespace aon::launcher
