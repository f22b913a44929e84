/// Names of what operations of NCCL are told with, as all outputs have them.
/// Thread: any.   Cost: none.
#pragma once

#include <aon/nccl.h>

#include <iterator>

namespace aon::writers::nccl {

// By the values of the enums of aon/nccl.h.
constexpr const char* kAlgorithmNames[] = {"unknown",       "tree", "ring",      "collnet direct",
                                           "collnet chain", "nvls", "nvls tree", "pat"};
constexpr const char* kProtocolNames[] = {"unknown", "ll", "ll128", "simple"};
constexpr const char* kTypeNames[] = {"unknown",  "int8",       "uint8",     "int32",   "uint32",
                                      "int64",    "uint64",     "float16",   "float32", "float64",
                                      "bfloat16", "float8e4m3", "float8e5m2"};
static_assert(std::size(kAlgorithmNames) == kNcclAlgorithmCount);
static_assert(std::size(kProtocolNames) == kNcclProtocolCount);
static_assert(std::size(kTypeNames) == kNcclTypeCount);

}  // namespace aon::writers::nccl
